// Command time-index-demo sends the records of the README's example: 300 of them, one in each batch, with a timestamp
// a second after the one before.
//
//	go run ./examples/time-index-demo [BOOTSTRAP-SERVER [BASE-TIMESTAMP-MS]]
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic   = "time-index-demo"
	records = 300
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	server := "127.0.0.1:9092"
	base := time.Now().Add(-records * time.Second)
	if len(args) > 0 {
		server = args[0]
	}
	if len(args) > 1 {
		ms, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return fmt.Errorf("base timestamp: %w", err)
		}
		base = time.UnixMilli(ms)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(server), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	for i := range records {
		r := &kgo.Record{
			Key:       fmt.Appendf(nil, "k%d", i),
			Value:     fmt.Appendf(nil, "v%d", i),
			Timestamp: base.Add(time.Duration(i) * time.Second),
		}
		if err := client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	fmt.Printf("sent %d records to %s, the first with timestamp %d\n", records, topic, base.UnixMilli())
	return nil
}
