//go:build !race

package protocol

// racePercent is nothing in builds without the race detector.
const racePercent = 0
