package group

import (
	"encoding/base64"
	"testing"

	"tidemark/internal/metadata"
)

// The hashes are those of another implementation of XXH3, of inputs of all classes of lengths.
func TestXXH3(t *testing.T) {
	want := map[int]uint64{
		0:    0x2d06800538d394c2,
		1:    0x13e608bc156defed,
		2:    0x1c9074b93943b86c,
		3:    0xa9088dda485b481c,
		4:    0x6d9253b16c8b1ed3,
		5:    0x998620e10e3a4b37,
		8:    0x60539db630471163,
		9:    0xfeff668361d723a8,
		12:   0x6829454be0cc3199,
		16:   0xb8c859b0f030b585,
		17:   0x714a04408e79b80f,
		31:   0xed41ac283d0674b3,
		32:   0x19ff4ee1d6ba1a55,
		33:   0x3e44983ad21679c8,
		48:   0xacfddc85e0659691,
		64:   0x287eb1fa9e4be2c1,
		65:   0x829218de4d798646,
		96:   0xf084e7cfbc624743,
		97:   0x1daa83271a8e7b7c,
		128:  0x67425a03650261bf,
		129:  0xc664bf3311c6abc4,
		160:  0xd70dea8de694b883,
		200:  0x746cd0025327bf5b,
		239:  0x1d861931c1f3cafa,
		240:  0x64556dc6b462a6cf,
		241:  0x8beadd3a8874fe17,
		256:  0x3c38817f6d79c0da,
		300:  0xfd9aa0f0d62e0227,
		512:  0xf58202b8d9019d1d,
		1023: 0xd26986a0b85dcc44,
		1024: 0x9b81661c641c72b1,
		1025: 0x806c2072ed713576,
		1100: 0x8e7ec0c060bbe423,
		2048: 0xabe604813ba62ed1,
		2049: 0x55aed42c9f1554b6,
		5000: 0x799aaddd7339581d,
	}
	for n, want := range want {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i*7 + 3)
		}
		if got := xxh3(b); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

// The hash of a group that is subscribed to one topic of three partitions is the one that Kafka wrote down.
func TestMetadataHash(t *testing.T) {
	id, err := base64.RawURLEncoding.DecodeString("jugYz3d3Tni_iLnX3P8aOg")
	if err != nil {
		t.Fatal(err)
	}
	d := metadata.NewDelta(metadata.NewImage())
	topic := &metadata.TopicRecord{Name: "t-a"}
	copy(topic.TopicID[:], id)
	if err := d.Replay(metadata.Record{Body: topic}); err != nil {
		t.Fatal(err)
	}
	for p := range int32(3) {
		body := &metadata.PartitionRecord{PartitionID: p, TopicID: topic.TopicID, Replicas: []int32{1}}
		if err := d.Replay(metadata.Record{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if got := (topicHashes{}).group(d.Image(), []string{"no-such", "t-a"}); got != 7753714457459389295 {
		t.Errorf("hash %d", got)
	}
	if got := (topicHashes{}).group(d.Image(), []string{"no-such"}); got != 0 {
		t.Errorf("hash of nothing: %d", got)
	}
}

// The hash of a topic with racks is the one that the implementation Kafka uses gives of the same fields.
func TestHashWithRacks(t *testing.T) {
	rack := "r1"
	id := metadata.UUID{1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
	records := []metadata.Body{&metadata.RegisterBrokerRecord{BrokerID: 1, Rack: &rack},
		&metadata.TopicRecord{Name: "tópic-a", TopicID: id}}
	for p := range int32(3) {
		records = append(records, &metadata.PartitionRecord{PartitionID: p, TopicID: id, Replicas: []int32{1}})
	}
	d := metadata.NewDelta(metadata.NewImage())
	for _, r := range records {
		if err := d.Replay(metadata.Record{Body: r}); err != nil {
			t.Fatal(err)
		}
	}
	if got := hashTopic(d.Image(), d.Image().Topic("tópic-a")); got != 0xc40f767c7083f72a {
		t.Errorf("hash %x", got)
	}
}
