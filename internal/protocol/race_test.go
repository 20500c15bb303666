//go:build race

package protocol

// racePercent is how much, in percent of the foreseen memory the race detector's builds may take on top: they keep on the heap what
// others keep on the stack.
const racePercent = 50
