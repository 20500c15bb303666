package protocol

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFetchLaterTag reads tagged fields in versions that do not have them yet: Kafka refuses the request. Tags that no
// version has are passed over.
func TestFetchLaterTag(t *testing.T) {
	body := func(version int16, tag uint32, partition bool) []byte {
		r := kmsg.NewPtrFetchRequest()
		r.Version = version
		topic := kmsg.NewFetchRequestTopic()
		p := kmsg.NewFetchRequestTopicPartition()
		if tags := &p.UnknownTags; partition {
			tags.Set(tag, make([]byte, 17))
		} else {
			r.UnknownTags.Set(tag, make([]byte, 17))
		}
		topic.Partitions = append(topic.Partitions, p)
		r.Topics = append(r.Topics, topic)
		return r.AppendTo(nil)
	}
	for _, c := range []struct {
		version   int16
		tag       uint32
		partition bool
		refused   bool
	}{
		{14, 1, false, true}, {14, 2, false, false}, {14, 0, true, true}, {16, 0, true, true}, {17, 1, true, true},
		{17, 2, true, false}, {18, 2, true, false}, {12, 9, true, false},
	} {
		var r FetchRequest
		err := r.Parse(c.version, body(c.version, c.tag, c.partition), nil)
		var malformed *MalformedError
		if (err != nil) != c.refused || err != nil && !errors.As(err, &malformed) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
