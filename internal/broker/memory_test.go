package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"tidemark/internal/config"
)

func TestDecompressionWaitsForItsShareOfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDecompression(&config.Broker{MemoryBytes: 4000}) // a quarter of it
		d.Acquire(700)
		done := make(chan struct{})
		go func() {
			d.Acquire(5000) // more than there ever is: waits for the whole
			close(done)
		}()
		time.Sleep(time.Hour)
		select {
		case <-done:
			t.Fatal("more was given out than there is")
		default:
		}
		d.Release(700)
		<-done
		d.Release(5000)
		d.Acquire(1000)
	})
}
