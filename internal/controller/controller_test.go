package controller

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tidemark/internal/metadata"
)

// testValidate knows one bad key and one bad value.
func testValidate(_ metadata.ConfigResource, after, _ map[string]string) error {
	for key, value := range after {
		if key == "nope" {
			return &Error{Reason: ErrInvalidConfig, Message: "Unknown topic config name: nope"}
		}
		if value == "bad" {
			return errors.New("Invalid value bad for configuration " + key)
		}
	}
	return nil
}

func testOptions() Options {
	return Options{
		ClusterID: "4L6g3nShT-eMCtK--X86sw", NodeID: 1, Validate: testValidate, MinInsyncReplicas: 1,
		DefaultPartitions: 1, DefaultReplicationFactor: 1, Features: SupportedFeatures(),
	}
}

// cluster is a controller with the image its decisions lead to.
type cluster struct {
	t      testing.TB
	c      *Controller
	image  *metadata.Image
	random io.Reader
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	k := &cluster{t: t, c: New(testOptions()), image: metadata.NewImage(), random: rand.NewChaCha8([32]byte{})}
	k.do(Activate{Bootstrap: BootstrapFeatures()})
	return k
}

// do decides a command and replays its records.
func (k *cluster) do(cmd Command) any {
	k.t.Helper()
	d, err := k.decide(cmd)
	if err != nil {
		k.t.Fatalf("%T: %v", cmd, err)
	}
	return k.apply(d)
}

func (k *cluster) decide(cmd Command) (Decision, error) {
	return k.c.Decide(State{Image: k.image, NextOffset: k.image.Offset() + 1, Random: k.random}, cmd)
}

func (k *cluster) apply(d Decision) any {
	k.t.Helper()
	l := metadata.NewLoader(k.image)
	first := k.image.Offset() + 1
	b := metadata.Batch{BaseOffset: first, LastOffset: first + int64(len(d.Records)) - 1, Records: d.Records}
	if err := l.Replay(b); err != nil {
		k.t.Fatal(err)
	}
	k.image = l.Publish().Image()
	for _, rec := range d.Records {
		if _, err := rec.AppendTo(nil); err != nil {
			k.t.Fatal(err)
		}
	}
	return d.Result
}

// addBroker registers and unfences a broker.
func (k *cluster) addBroker(id int32, dirs ...metadata.UUID) int64 {
	k.t.Helper()
	if dirs == nil {
		dirs = []metadata.UUID{{0: 9, 15: byte(id)}}
	}
	epoch := k.do(RegisterBroker{Registration: Registration{
		BrokerID: id, ClusterID: "4L6g3nShT-eMCtK--X86sw",
		IncarnationID: metadata.UUID{0: 8, 1: byte(k.image.Offset()), 15: byte(id)},
		Features:      SupportedFeatures(), LogDirs: dirs, PreviousEpoch: -1,
	}}).(BrokerRegistered).Epoch
	reply := k.do(BrokerHeartbeat{BrokerID: id, BrokerEpoch: epoch, CurrentOffset: epoch}).(HeartbeatReply)
	if reply.IsFenced || !reply.IsCaughtUp {
		k.t.Fatalf("broker %d is still fenced: %+v", id, reply)
	}
	return epoch
}

func (k *cluster) create(t NewTopic) CreatedTopic {
	k.t.Helper()
	return k.do(CreateTopics{Topics: []NewTopic{t}}).(CreateTopicsResult).Topics[0]
}

func text(s string) *string { return &s }

func simple(name string) NewTopic { return NewTopic{Name: name, Partitions: -1, ReplicationFactor: -1} }

// TestCreateTopicRefusals has Kafka's texts, most of them measured.
func TestCreateTopicRefusals(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	k.create(simple("have.it"))
	assigned := func(factor int16, partitions int32, a ...Assignment) NewTopic {
		return NewTopic{Name: "n", Partitions: partitions, ReplicationFactor: factor, Assignments: a}
	}
	long := strings.Repeat("x", 250)
	for _, tt := range []struct {
		topic  NewTopic
		reason error
		text   string
	}{
		{simple("have.it"), ErrTopicExists, "Topic 'have.it' already exists."},
		{simple("have_it"), ErrInvalidTopic, "Topic 'have_it' collides with existing topic: have.it"},
		{simple("a/b"), ErrInvalidTopic, "Topic name is invalid: 'a/b' contains one or more characters other than " +
			"ASCII alphanumerics, '.', '_' and '-'"},
		{simple("."), ErrInvalidTopic, "Topic name is invalid: '.' is not allowed"},
		{simple(".."), ErrInvalidTopic, "Topic name is invalid: '..' is not allowed"},
		{simple(""), ErrInvalidTopic, "Topic name is invalid: the empty string is not allowed"},
		{simple(long), ErrInvalidTopic, "Topic name is invalid: the length of '" + long +
			"' is longer than the max allowed length 249"},
		{simple("__cluster_metadata"), ErrInvalidRequest, "Creation of internal topic __cluster_metadata is prohibited."},
		{NewTopic{Name: "n", Partitions: 0, ReplicationFactor: 1}, ErrInvalidPartitions,
			"Number of partitions was set to an invalid non-positive value."},
		{NewTopic{Name: "n", Partitions: 1, ReplicationFactor: 0}, ErrInvalidReplicationFactor,
			"Replication factor must be larger than 0, or -1 to use the default value."},
		{NewTopic{Name: "n", Partitions: 1, ReplicationFactor: 2}, ErrInvalidReplicationFactor,
			"Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because " +
				"only 1 broker(s) are registered or some brokers have all their log directories cordoned."},
		{NewTopic{Name: "n", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigEntry{{"nope", text("1")}}},
			ErrInvalidConfig, "Unknown topic config name: nope"},
		{NewTopic{Name: "n", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigEntry{{"a", text("bad")}}},
			ErrInvalidConfig, "Invalid value bad for configuration a"},
		{NewTopic{Name: "n", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigEntry{{"a", nil}, {"b", nil}}},
			ErrInvalidConfig, "Null value not supported for topic configs: a,b"},
		{assigned(1, -1, Assignment{0, []int32{1}}), ErrInvalidRequest,
			"A manual partition assignment was specified, but replication factor was not set to -1."},
		{assigned(-1, 1, Assignment{0, []int32{1}}), ErrInvalidRequest,
			"A manual partition assignment was specified, but numPartitions was not set to -1."},
		{assigned(-1, -1, Assignment{0, []int32{1}}, Assignment{0, []int32{1}}), ErrInvalidReplicaAssignment,
			"Found multiple manual partition assignments for partition 0"},
		{assigned(-1, -1, Assignment{0, []int32{7}}), ErrInvalidReplicaAssignment,
			"The manual partition assignment includes broker 7, but no such broker is registered."},
		{assigned(-1, -1, Assignment{0, []int32{1, 1}}), ErrInvalidReplicaAssignment,
			"The manual partition assignment includes the broker 1 more than once."},
		{assigned(-1, -1, Assignment{0, nil}), ErrInvalidReplicaAssignment,
			"The manual partition assignment includes an empty replica list."},
		{assigned(-1, -1, Assignment{1, []int32{1}}), ErrInvalidReplicaAssignment,
			"partitions should be a consecutive 0-based integer sequence"},
	} {
		before := k.image
		got := k.create(tt.topic)
		if got.Err == nil || !errors.Is(got.Err, tt.reason) || got.Err.Message != tt.text {
			t.Errorf("%+v\n got %v\nwant %s", tt.topic, got.Err, tt.text)
		}
		if k.image.NumTopics() != before.NumTopics() {
			t.Errorf("%q was created", tt.topic.Name)
		}
	}
}

func TestCreateTopicsTogether(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	res := k.do(CreateTopics{Topics: []NewTopic{simple("b"), simple("dup"), simple("a/b"), simple("a"),
		simple("dup")}}).(CreateTopicsResult)
	var got []string
	for _, topic := range res.Topics {
		got = append(got, fmt.Sprint(topic.Name, " ", topic.Err != nil))
	}
	if want := []string{"b false", "a/b true", "a false", "dup true"}; !slices.Equal(got, want) {
		t.Errorf("result %v, want %v", got, want)
	}
	if e := res.Topics[3].Err; e.Message != "Duplicate topic name." {
		t.Errorf("twice the same name: %v", e)
	}
	if k.image.NumTopics() != 2 || k.image.Topic("a") == nil || k.image.Topic("b").ID != res.Topics[0].ID {
		t.Errorf("%d topics", k.image.NumTopics())
	}
	d, err := k.decide(CreateTopics{Topics: []NewTopic{simple("c")}, ValidateOnly: true})
	if err != nil || len(d.Records) != 0 || d.Result.(CreateTopicsResult).Topics[0].Err != nil {
		t.Errorf("validation only: %+v %v", d, err)
	}
	big := NewTopic{Name: "big", Partitions: 10001, ReplicationFactor: 1}
	if _, err := k.decide(CreateTopics{Topics: []NewTopic{big}}); !errors.Is(err, ErrPolicyViolation) {
		t.Errorf("10001 partitions: %v", err)
	}
	big.Partitions = 10000
	if _, err := k.decide(CreateTopics{Topics: []NewTopic{big}}); !errors.Is(err, ErrPolicyViolation) {
		t.Errorf("10001 records: %v", err)
	}
}

func TestDeleteTopics(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	a, b, c := k.create(simple("a")).ID, k.create(simple("b")).ID, k.create(simple("c")).ID
	none := metadata.UUID{0: 1}
	res := k.do(DeleteTopics{
		IDs:   []metadata.UUID{a, none, b, c, c},
		Names: []string{"b", "no", "no", "gone"},
	}).(DeleteTopicsResult)
	want := []struct {
		id   metadata.UUID
		name string
		err  string
	}{
		{none, "", "This server does not host this topic ID."},
		{c, "", "Duplicate topic id."},
		{b, "b", "The provided topic name maps to an ID that was already supplied."},
		{metadata.UUID{}, "no", "Duplicate topic name."},
		{metadata.UUID{}, "gone", "This server does not host this topic-partition."},
		{a, "a", ""},
	}
	if len(res.Topics) != len(want) {
		t.Fatalf("outcomes: %+v, want %d", res.Topics, len(want))
	}
	for i, want := range want {
		got := res.Topics[i]
		message := ""
		if got.Err != nil {
			message = got.Err.Message
		}
		if got.ID != want.id || got.Name != want.name || message != want.err {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	if k.image.Topic("a") != nil || k.image.Topic("b") == nil || k.image.Topic("c") == nil {
		t.Errorf("topics left: %d", k.image.NumTopics())
	}
}

func TestCreatePartitions(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	k.create(NewTopic{Name: "a", Partitions: 2, ReplicationFactor: 1})
	for _, tt := range []struct {
		more   MorePartitions
		reason error
		text   string
	}{
		{MorePartitions{Topic: "none", Count: 2}, ErrUnknownTopic, ""},
		{MorePartitions{Topic: "a", Count: 2}, ErrInvalidPartitions, "Topic already has 2 partition(s)."},
		{MorePartitions{Topic: "a", Count: 1}, ErrInvalidPartitions,
			"The topic a currently has 2 partition(s); 1 would not be an increase."},
		{MorePartitions{Topic: "a", Count: 4, Assignments: [][]int32{{1}}}, ErrInvalidReplicaAssignment,
			"Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."},
		{MorePartitions{Topic: "a", Count: 3, Assignments: [][]int32{{9}}}, ErrInvalidReplicaAssignment,
			"The manual partition assignment includes broker 9, but no such broker is registered."},
		{MorePartitions{Topic: "a", Count: 20000}, ErrPolicyViolation,
			"Unable to perform excessively large batch operation."},
	} {
		res := k.do(CreatePartitions{Topics: []MorePartitions{tt.more}}).(CreatePartitionsResult)
		if e := res.Topics[0].Err; e == nil || !errors.Is(e, tt.reason) || e.Message != tt.text {
			t.Errorf("%+v: %v, want %s", tt.more, e, tt.text)
		}
	}
	k.do(CreatePartitions{Topics: []MorePartitions{{Topic: "a", Count: 4}}, ValidateOnly: true})
	k.do(CreatePartitions{Topics: []MorePartitions{{Topic: "a", Count: 5, Assignments: [][]int32{{1}, {1}, {1}}}}})
	if n := k.image.Topic("a").NumPartitions(); n != 5 {
		t.Errorf("%d partitions", n)
	}
}

func TestRandomIDs(t *testing.T) {
	id, err := NewUUID(bytes.NewReader(bytes.Repeat([]byte{0xf8, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}, 1)))
	if err == nil {
		t.Errorf("%v begins with a hyphen or the source ended too early", id)
	}
	if _, err := NewUUID(bytes.NewReader(nil)); err == nil {
		t.Error("an id was drawn from nothing")
	}
	id, err = NewUUID(rand.NewChaCha8([32]byte{}))
	if err != nil || id[6]>>4 != 4 || id[8]>>6 != 2 {
		t.Errorf("%x %v", id, err)
	}
}
