package protocol

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func produceBody(version int16, partitions, recordBytes int) []byte {
	r := kmsg.NewPtrProduceRequest()
	r.Version = version
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = "orders"
	for i := range partitions {
		topic.Partitions = append(topic.Partitions,
			kmsg.ProduceRequestTopicPartition{Partition: int32(i), Records: make([]byte, recordBytes)})
	}
	r.Topics = append(r.Topics, topic)
	return r.AppendTo(nil)
}

func fetchBody(version int16, partitions int) []byte {
	r := kmsg.NewPtrFetchRequest()
	r.Version = version
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = "orders"
	for i := range partitions {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition = int32(i)
		topic.Partitions = append(topic.Partitions, p)
	}
	r.Topics = append(r.Topics, topic)
	return r.AppendTo(nil)
}

func BenchmarkParseProduce(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint("partitions=", n), func(b *testing.B) {
			body := produceBody(12, n, 1000)
			var r ProduceRequest
			var names Names
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if err := r.Parse(12, body, &names); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseFetch(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint("partitions=", n), func(b *testing.B) {
			body := fetchBody(12, n)
			var r FetchRequest
			var names Names
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Parse(12, body, &names); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeFetch(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint("partitions=", n), func(b *testing.B) {
			r := FetchResponse{Topics: []FetchTopicResponse{{Name: "orders"}}}
			for i := range n {
				p := FetchError(int32(i), 0)
				p.Records = BytesPart(make([]byte, 1000))
				r.Topics[0].Partitions = append(r.Topics[0].Partitions, p)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Encode(12)
			}
		})
	}
}

func BenchmarkDecodeMetadata(b *testing.B) {
	r := kmsg.NewPtrMetadataRequest()
	r.Version = 12
	name := "orders"
	r.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	body := r.AppendTo(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRequest(RequestHeader{Key: 3, Version: 12}, body); err != nil {
			b.Fatal(err)
		}
	}
}
