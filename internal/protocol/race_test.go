//go:build race

package protocol

// racePercent is how much more memory than foreseen, in percent, the race detector's builds may take: they keep on the
// heap what others keep on the stack.
const racePercent = 50
