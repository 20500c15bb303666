package broker

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSchedulerRepeatsUntilStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(2)
		var runs, once atomic.Int32
		s.Every(30*time.Second, 5*time.Minute, func() { runs.Add(1) })
		s.After(time.Hour, func() { once.Add(1) })
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := runs.Load(); n != 0 {
			t.Errorf("runs before the initial delay: got %d, want 0", n)
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if n := runs.Load(); n != 3 {
			t.Errorf("runs after 11 minutes: got %d, want 3", n)
		}
		s.stop()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if runs.Load() != 3 || once.Load() != 0 {
			t.Errorf("after stop: got %d runs and %d single runs, want 3 and 0", runs.Load(), once.Load())
		}
	})
}

func TestSchedulerBoundsTasksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(2)
		var now, most atomic.Int32
		for range 10 {
			s.Background(func() {
				n := now.Add(1)
				for {
					m := most.Load()
					if n <= m || most.CompareAndSwap(m, n) {
						break
					}
				}
				time.Sleep(time.Second)
				now.Add(-1)
			})
		}
		time.Sleep(10 * time.Second)
		s.stop()
		if most.Load() != 2 {
			t.Errorf("tasks at once: got %d, want 2", most.Load())
		}
	})
}

// TestSchedulerKeepsLanesApart: what waits for the disk holds up nothing else, and is dropped at the end if it has not
// begun.
func TestSchedulerKeepsLanesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(2)
		disk := make(chan struct{})
		var flushes, others atomic.Int32
		for range 100 {
			s.Background(func() {
				<-disk
				flushes.Add(1)
			})
		}
		s.Soon(func() { others.Add(1) })
		s.After(time.Second, func() { others.Add(1) })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if others.Load() != 2 {
			t.Errorf("tasks beside those that wait for the disk: got %d, want 2", others.Load())
		}
		stopped := make(chan struct{})
		go func() {
			s.stop()
			close(stopped)
		}()
		synctest.Wait()
		close(disk)
		<-stopped
		if flushes.Load() != 2 {
			t.Errorf("tasks that ran: got %d, want the 2 that had begun", flushes.Load())
		}
	})
}
