package tidemarktest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/tidemarktest"
)

func Example() {
	kafka, err := tidemarktest.New(tidemarktest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = kafka.Close() }()

	ctx := context.Background()
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addr()), kgo.AllowAutoTopicCreation(),
		kgo.DefaultProduceTopic("orders"), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, kgo.StringRecord("one tide table")).FirstErr(); err != nil {
		log.Fatal(err)
	}
	fetches := client.PollFetches(ctx)
	fetches.EachRecord(func(r *kgo.Record) {
		fmt.Printf("%s offset %d: %s\n", r.Topic, r.Offset, r.Value)
	})
	// Output: orders offset 0: one tide table
}

func ExampleBroker_CreateTopic() {
	kafka, err := tidemarktest.New(tidemarktest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = kafka.Close() }()

	ctx := context.Background()
	compacted := map[string]string{"cleanup.policy": "compact"}
	fmt.Println(kafka.CreateTopic(ctx, "prices", 3, compacted))
	fmt.Println(kafka.CreateTopic(ctx, "prices", 3, compacted))
	// Output:
	// <nil>
	// create topic prices: TOPIC_ALREADY_EXISTS: Topic with this name already exists.
}

// A broker that comes back has what it had, at the same address: clients go on.
func ExampleBroker_Restart() {
	kafka, err := tidemarktest.New(tidemarktest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = kafka.Close() }()

	ctx := context.Background()
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addr()), kgo.AllowAutoTopicCreation(),
		kgo.DefaultProduceTopic("orders"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for _, value := range []string{"before", "after"} {
		r, err := client.ProduceSync(ctx, kgo.StringRecord(value)).First()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s at offset %d\n", r.Value, r.Offset)
		if err := kafka.Restart(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// before at offset 0
	// after at offset 1
}
