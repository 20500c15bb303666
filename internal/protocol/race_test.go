//go:build race

package protocol

// raceShare is how much of the foreseen memory the race detector's builds may take on top: they keep on the heap what
// others keep on the stack.
const raceShare = 2
