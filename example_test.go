package tidemark_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"tidemark"
)

// A store holds what a program measured; later it looks up where to read on from.
func Example() {
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	store, err := tidemark.Open(dir, tidemark.Options{Config: map[string]string{"retention.ms": "-1"}})
	if err != nil {
		log.Fatal(err)
	}
	levels, err := store.Create("water-levels", 0)
	if err != nil {
		log.Fatal(err)
	}
	noon := time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)
	for hour, level := range []string{"2.1 m", "3.4 m", "4.0 m"} {
		at := noon.Add(time.Duration(hour) * time.Hour)
		if _, err := levels.Append(tidemark.Record{Time: at, Value: []byte(level)}); err != nil {
			log.Fatal(err)
		}
	}

	found, ok, err := levels.OffsetForTime(noon.Add(30 * time.Minute))
	if err != nil || !ok {
		log.Fatal(ok, err)
	}
	fmt.Println("from offset", found.Offset)
	for r, err := range levels.Read(found.Offset) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %s\n", r.Time.UTC().Format(time.TimeOnly), r.Value)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// from offset 1
	// 13:00:00 3.4 m
	// 14:00:00 4.0 m
}

// A directory that a Kafka broker wrote, or is writing, is looked into without a broker.
func ExampleOpenReadOnly() {
	store, err := tidemark.OpenReadOnly("test/golden/data/13-data/data", tidemark.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	topic, err := store.Log("t-b", 0)
	if err != nil {
		log.Fatal(err)
	}
	found, _, err := topic.OffsetForTime(time.UnixMilli(1790214439927))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("offsets %d to %d; %d is the first at %v or later\n", topic.StartOffset(), topic.EndOffset(),
		found.Offset, time.UnixMilli(1790214439927).UTC().Format(time.DateTime))
	// Output: offsets 0 to 60; 31 is the first at 2026-09-24 01:47:19 or later
}
