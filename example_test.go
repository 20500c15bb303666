package tidemark_test

import (
	"errors"
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

// measured makes a store with a log of three records, an hour apart, in a directory of its own.
func measured() (store *tidemark.Store, levels *tidemark.Log, done func()) {
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		log.Fatal(err)
	}
	if store, err = tidemark.Open(dir, tidemark.Options{}); err != nil {
		log.Fatal(err)
	}
	if levels, err = store.Create("water-levels", 0); err != nil {
		log.Fatal(err)
	}
	noon := time.Now().Truncate(time.Hour)
	for hour, level := range []string{"2.1 m", "3.4 m", "4.0 m"} {
		at := noon.Add(time.Duration(hour-3) * time.Hour)
		if _, err := levels.Append(tidemark.Record{Time: at, Value: []byte(level)}); err != nil {
			log.Fatal(err)
		}
	}
	return store, levels, func() { _ = errors.Join(store.Close(), os.RemoveAll(dir)) }
}

// A directory is made when it is absent, and holds what Kafka's would. Configs are those of Kafka's topics.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	config := map[string]string{"compression.type": "zstd", "retention.ms": "3600000"}
	store, err := tidemark.Open(dir, tidemark.Options{Config: config})
	if err != nil {
		log.Fatal(err)
	}
	_, err = tidemark.Open(dir, tidemark.Options{})
	fmt.Println("opened twice:", errors.Is(err, tidemark.ErrLocked))
	fmt.Println("closed:", store.Close())
	// Output:
	// opened twice: true
	// closed: <nil>
}

// The logs of a store are named by topic and number.
func ExampleStore() {
	store, _, done := measured()
	defer done()
	if _, err := store.Create("tides", 2); err != nil {
		log.Fatal(err)
	}
	partitions, err := store.Partitions()
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range partitions {
		l, err := store.Log(p.Topic, p.Number)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s-%d: offsets %d to %d\n", p.Topic, p.Number, l.StartOffset(), l.EndOffset())
	}
	_, err = store.Log("tides", 0)
	fmt.Println("another one:", errors.Is(err, tidemark.ErrUnknownPartition))
	// Output:
	// tides-2: offsets 0 to 0
	// water-levels-0: offsets 0 to 3
	// another one: true
}

// Records that are appended together are one batch: all of them are in the log, or none.
func ExampleLog_Append() {
	_, levels, done := measured()
	defer done()
	offset, err := levels.Append(
		tidemark.Record{Key: []byte("pier"), Value: []byte("3.9 m")},
		tidemark.Record{Key: []byte("lock"), Headers: []tidemark.Header{{Key: []byte("unit"), Value: []byte("m")}}},
	)
	fmt.Println("offset", offset, err)
	fmt.Println("on disk:", levels.Flush())
	// Output:
	// offset 3 <nil>
	// on disk: <nil>
}

// Reading ends at the end that the log has when it begins; go on from the next offset to follow it.
func ExampleLog_Read() {
	_, levels, done := measured()
	defer done()
	next := int64(1)
	for r, err := range levels.Read(next) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s\n", r.Offset, r.Value)
		next = r.Offset + 1
	}
	for _, err := range levels.Read(next + 1) {
		var outside *tidemark.OffsetOutOfRangeError
		fmt.Println("behind the end:", errors.As(err, &outside))
	}
	// Output:
	// 1: 3.4 m
	// 2: 4.0 m
	// behind the end: true
}

// The first record that is not earlier than a time is where to read on from.
func ExampleLog_OffsetForTime() {
	_, levels, done := measured()
	defer done()
	found, ok, err := levels.OffsetForTime(time.Now().Truncate(time.Hour).Add(-150 * time.Minute))
	fmt.Println(found.Offset, ok, err)
	_, ok, err = levels.OffsetForTime(time.Now().Add(time.Hour))
	fmt.Println("in an hour:", ok, err)
	// Output:
	// 1 true <nil>
	// in an hour: false <nil>
}
