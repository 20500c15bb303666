// Command time-index-demo sends the records of the README's example: 300 of them, one in each batch, with a timestamp
// a second after the one before.
//
//	go run ./examples/time-index-demo [BOOTSTRAP-SERVER [BASE-TIMESTAMP-MS]]
package main

import (
	"context"
	"fmt"
	"log"
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
	server := "127.0.0.1:9092"
	base := time.Now().Add(-records * time.Second)
	if len(os.Args) > 1 {
		server = os.Args[1]
	}
	if len(os.Args) > 2 {
		ms, err := strconv.ParseInt(os.Args[2], 10, 64)
		if err != nil {
			log.Fatalf("base timestamp: %v", err)
		}
		base = time.UnixMilli(ms)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(server), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for i := range records {
		r := &kgo.Record{
			Key:       fmt.Appendf(nil, "k%d", i),
			Value:     fmt.Appendf(nil, "v%d", i),
			Timestamp: base.Add(time.Duration(i) * time.Second),
		}
		if err := client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			log.Fatalf("record %d: %v", i, err)
		}
	}
	fmt.Printf("sent %d records to %s, the first with timestamp %d\n", records, topic, base.UnixMilli())
}
