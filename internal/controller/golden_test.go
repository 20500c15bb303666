package controller

import (
	"regexp"
	"strings"
	"testing"

	"tidemark/internal/config"
	"tidemark/test/golden"
)

// TestGoldenCreateTopicAnswers gives the controller, with a real node's
// settings, every CreateTopics whose answer was recorded from Kafka.
func TestGoldenCreateTopicAnswers(t *testing.T) {
	props := map[string]string{"log.dirs": "/data", "node.id": "1"}
	config.FillStandalone(props)
	node, err := config.NewNode(props)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NodeOptions("4L6g3nShT-eMCtK--X86sw", node, func() *config.Node { return node })
	if err != nil {
		t.Fatal(err)
	}
	k := newCluster(t)
	k.c = New(o)
	k.addBroker(1)
	k.create(simple("90-errors"))
	withConfig := regexp.MustCompile(`^create topic with ([a-z.]+)=(.*)$`)
	named := regexp.MustCompile(`^create topic '(.*)'$`)
	seen := 0
	for _, a := range golden.ErrorAnswers(t) {
		topic := NewTopic{Name: "new", Partitions: 1, ReplicationFactor: 1}
		switch m := withConfig.FindStringSubmatch(a.What); {
		case m != nil:
			topic.Configs = []ConfigEntry{{m[1], &m[2]}}
		case named.MatchString(a.What):
			topic.Name = named.FindStringSubmatch(a.What)[1]
		case a.What == "create topic of 250 chars":
			topic.Name = strings.Repeat("x", 250)
		case a.What == "create topic again":
			topic.Name = "90-errors"
		case a.What == "create topic rf 2":
			topic.ReplicationFactor = 2
		default:
			continue
		}
		seen++
		d, err := k.decide(CreateTopics{Topics: []NewTopic{topic}})
		if err != nil {
			t.Errorf("%s: %v", a.What, err)
			continue
		}
		_, want, refused := strings.Cut(a.Answer, "Exception: ")
		got := d.Result.(CreateTopicsResult).Topics[0].Err
		switch {
		case refused != (got != nil):
			t.Errorf("%s: %v, want %s", a.What, got, a.Answer)
		case refused && got.Message != want:
			t.Errorf("%s\n got %s\nwant %s", a.What, got.Message, want)
		}
	}
	if seen < 20 {
		t.Errorf("only %d answers are about creating topics", seen)
	}
}
