//go:build !race

package proc

// raceDetector says that this test runs with the race detector.
const raceDetector = false
