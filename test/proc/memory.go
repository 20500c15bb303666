package proc

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// WatchMemory looks every millisecond at what this process has in use of heap and stacks. stop ends that and tells the
// most that there was beyond what there is now, in bytes.
func WatchMemory() (stop func() (peakBytes int64)) {
	runtime.GC()
	before, peak := memoryInUse(), int64(0)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			peak = max(peak, memoryInUse()-before)
			select {
			case <-end:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() int64 {
		close(end)
		<-ended
		return peak
	}
}

func memoryInUse() (total int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		total += int64(s.Value.Uint64())
	}
	return total
}
