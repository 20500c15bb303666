//go:build !race

package protocol

// raceShare is nothing in builds without the race detector.
const raceShare = 0
