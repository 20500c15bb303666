package config

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/record"
	"tidemark/test/golden"

	"github.com/google/go-cmp/cmp"
)

// alone returns the node that runs without a server.properties, with props on top.
func alone(t *testing.T, props map[string]string) *Node {
	t.Helper()
	n, err := newAlone(props)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newAlone(props map[string]string) (*Node, error) {
	all := map[string]string{"node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092"}
	maps.Copy(all, props)
	FillStandalone(all)
	return NewNode(all)
}

func TestParseProperties(t *testing.T) {
	got, err := ParseProperties([]byte("# c\n a = 1 \nb:2\nc\\:d=e\\\n   f\nk=${env:X} ${k}\nu=\\u00e9\nl=\xe9\na=3\n"))
	want := map[string]string{"a": "3", "b": "2", "c:d": "ef", "k": "${env:X} ${k}", "u": "é", "l": "é"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := ParseProperties([]byte("a=\\u12")); err == nil {
		t.Error("a broken escape was taken")
	}
}

func TestTopicDefaultsAreThoseOfTheLog(t *testing.T) {
	got, err := alone(t, nil).Topic(nil)
	if diff := cmp.Diff(commitlog.DefaultConfig(), got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestTopicOverrides(t *testing.T) {
	n := alone(t, map[string]string{"log.segment.bytes": "2097152", "compression.type": "zstd"})
	got, err := n.Topic(map[string]string{
		"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime", "internal.segment.bytes": "100",
		"unknown": "kept", "compression.type": "uncompressed", "min.cleanable.dirty.ratio": "0.1", "retention.ms": "-1",
	})
	want := commitlog.DefaultConfig()
	want.CleanupPolicy, want.MessageTimestampType = commitlog.CleanupCompact, record.LogAppendTime
	want.SegmentBytes, want.CompressionType = 100, commitlog.CompressionUncompressed
	want.MinCleanableDirtyRatio, want.RetentionMs = 0.1, -1
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := n.Topic(map[string]string{"segment.bytes": "1"}); !errors.Is(err, ErrInvalidConfig) {
		t.Errorf("got %v", err)
	}
}

// The finest unit that is set counts; a dynamic one replaces them all.
func TestTimesInSeveralUnits(t *testing.T) {
	static := map[string]string{}
	retention := func(dynamic map[string]string) int64 {
		n, refused := alone(t, static).WithDynamic(nil, dynamic)
		c, err := n.Topic(nil)
		if err != nil || refused != nil {
			t.Fatal(err, refused)
		}
		return c.RetentionMs
	}
	for _, step := range []struct {
		key, value string
		want       int64
	}{
		{"log.retention.hours", "2", 7200000},
		{"log.retention.minutes", "3", 180000},
		{"log.retention.ms", "4", 4},
		{"log.retention.ms", "-7", -1},
	} {
		static[step.key] = step.value
		if got := retention(nil); got != step.want {
			t.Errorf("%v: got %d, want %d", static, got, step.want)
		}
	}
	if got := retention(map[string]string{"log.retention.ms": "5"}); got != 5 {
		t.Errorf("dynamic: got %d", got)
	}
}

func TestWithDynamicLeavesOutWhatItCannotUse(t *testing.T) {
	n := alone(t, map[string]string{"log.segment.bytes": "2097152"})
	next, refused := n.WithDynamic(
		map[string]string{"log.segment.bytes": "3145728", "listeners": "X://a:1", "node.id": "3", "log.roll.ms": "x"},
		map[string]string{"message.max.bytes": "7", "ssl.key.password": "p"})
	if len(refused) != 4 {
		t.Errorf("refused %v", refused)
	}
	c, err := next.Topic(nil)
	if err != nil || c.SegmentBytes != 3145728 || c.MaxMessageBytes != 7 {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err = n.Topic(nil); err != nil || c.SegmentBytes != 2097152 {
		t.Errorf("the first node changed: %+v, %v", c, err)
	}
	broken, refused := next.WithDynamic(map[string]string{"log.roll.ms": "0"}, nil)
	if c, err = broken.Topic(nil); err != nil || c.SegmentBytes != 3145728 || len(refused) != 1 {
		t.Errorf("got %+v, %v, %v", c, err, refused)
	}
}

func TestUnknownKeysAreNamed(t *testing.T) {
	n := alone(t, map[string]string{
		"zoo": "1", "log.retention.msec": "1", "tidemark.open.files": "99", "listener.name.plaintext.max.connections": "1",
		"rsm.config.x": "1", "listener.name.plaintext.what": "1",
	})
	want := []string{"listener.name.plaintext.what", "log.retention.msec", "zoo"}
	if got := n.Unknown(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestKeysWithoutEffectAreNamed(t *testing.T) {
	n := alone(t, map[string]string{
		AuthorizerKey: "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "ssl.keystore.location": "/etc/k.jks",
		"metric.reporters": "org.apache.kafka.common.metrics.JmxReporter", "sasl.mechanism.inter.broker.protocol": "GSSAPI",
		"listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN", "num.io.threads": "4", "log.retention.ms": "1",
		"remote.log.storage.system.enable": "false",
	})
	want := []string{AuthorizerKey, "listener.name.plaintext.sasl.enabled.mechanisms", "ssl.keystore.location"}
	if got := n.WithoutEffect(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOwnKeysAreShownWhenSet(t *testing.T) {
	shown := func(n *Node) *Entry {
		for _, e := range n.DescribeBroker() {
			if e.Name == "tidemark.open.files" {
				return &e
			}
		}
		return nil
	}
	if e := shown(alone(t, nil)); e != nil {
		t.Errorf("not set: %+v", e)
	}
	e := shown(alone(t, map[string]string{"tidemark.open.files": "99"}))
	if e == nil || e.Sensitive || !e.ReadOnly || *e.Value != "99" || e.Source != SourceStaticBroker || e.Type != Int {
		t.Errorf("got %+v", e)
	}
}

func TestBroker(t *testing.T) {
	b := alone(t, map[string]string{
		"listeners":                      "PLAINTEXT://:9092,INNER://[::1]:9093",
		"advertised.listeners":           "PLAINTEXT://h:1,INNER://h:1",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNER:SSL",
		"inter.broker.listener.name":     "inner", "log.dirs": "/a, /b",
		"log.flush.scheduler.interval.ms": "9223372036854775807",
		"connections.max.idle.ms":         "5000", "cordoned.log.dirs": "*", "max.connections.per.ip.overrides": "::1:7, h:8",
	}).Broker()
	want := []Listener{{"PLAINTEXT", "PLAINTEXT", "", 9092}, {"INNER", "SSL", "::1", 9093}}
	if diff := cmp.Diff(want, b.Listeners); diff != "" {
		t.Error(diff)
	}
	want = []Listener{{"PLAINTEXT", "PLAINTEXT", "h", 1}, {"INNER", "SSL", "h", 1}}
	if diff := cmp.Diff(want, b.AdvertisedListeners); diff != "" {
		t.Error(diff)
	}
	if b.InterBrokerListenerName != "INNER" || b.NodeID != 1 || b.OffsetsTopic.ReplicationFactor != 1 {
		t.Errorf("got %+v", b)
	}
	dirs := []string{"/a", "/b"}
	if !slices.Equal(b.LogDirs, dirs) || !slices.Equal(b.CordonedLogDirs, dirs) || b.MetadataLogDir != "/a" {
		t.Errorf("directories %v %v %s", b.LogDirs, b.CordonedLogDirs, b.MetadataLogDir)
	}
	if b.LogFlushSchedulerInterval != math.MaxInt64 || b.ConnectionsMaxIdle != 5*time.Second {
		t.Errorf("times %v %v", b.LogFlushSchedulerInterval, b.ConnectionsMaxIdle)
	}
	if diff := cmp.Diff(map[string]int32{"::1": 7, "h": 8}, b.MaxConnectionsPerIPOverrides); diff != "" {
		t.Error(diff)
	}
}

func TestStartIsRefused(t *testing.T) {
	for _, c := range []struct{ props, want string }{
		{"node.id=x", "Invalid value x for configuration broker.id: Not a number of type INT"},
		{"broker.id=2", "You must set `node.id` to the same value as `broker.id`."},
		{"process.roles=broker", "If using process.roles, either"},
		{"controller.quorum.voters=2@h:1", "the node id 1 must be included in the set of voters"},
		{"controller.quorum.voters=1@h:1", "controller.listener.names must contain at least one value appearing in"},
		{"controller.quorum.voters=1", "Invalid configuration value for controller.quorum.voters."},
		{"advertised.listeners=PLAINTEXT://0.0.0.0:1", "cannot use the nonroutable meta-address 0.0.0.0"},
		{"advertised.listeners=SSL://h:1", "inter.broker.listener.name must be a listener name defined in"},
		{"listeners=A://h:1", "No security protocol defined for listener A"},
		{"listeners=PLAINTEXT://h:1 SSL://h:1", "Each listener must have a different port"},
		{"tidemark.api.versions=x", "Invalid value x for configuration tidemark.api.versions: String must be one"},
		{"group.consumer.session.timeout.ms=1", "group.consumer.session.timeout.ms must be greater than or equal to"},
	} {
		name, text, _ := strings.Cut(c.props, "=")
		_, err := newAlone(map[string]string{name: strings.ReplaceAll(text, " ", ",")})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.props, err, c.want)
		}
	}
	_, err := NewNode(nil)
	if err == nil || !strings.Contains(err.Error(), `Missing required configuration "process.roles"`) {
		t.Errorf("got %v", err)
	}
}

// The golden answers of Kafka to CreateTopics requests.
func TestCreateTopicConfigsOfGolden(t *testing.T) {
	v := Validator{func() *Node { return alone(t, nil) }}
	checked := 0
	for _, a := range golden.ErrorAnswers(t) {
		setting, ok := strings.CutPrefix(a.What, "create topic with ")
		if !ok {
			continue
		}
		checked++
		name, text, _ := strings.Cut(setting, "=")
		err := v.Validate(Resource{TopicResource, "t"}, map[string]string{name: text}, nil)
		if got := javaError(err); got != strings.TrimSpace(a.Answer) {
			t.Errorf("%s:\n\tgot  %s\n\twant %s", a.What, got, a.Answer)
		}
	}
	if checked < 15 {
		t.Errorf("only %d answers", checked)
	}
}

func javaError(err error) string {
	if err == nil {
		return "OK"
	}
	return "InvalidConfigurationException: " + err.Error()
}

func TestApply(t *testing.T) {
	current := map[string]string{"cleanup.policy": "compact", "retention.ms": "5"}
	for _, c := range []struct {
		change  Change
		want    string
		present bool
	}{
		{Change{"retention.ms", Set, "6"}, "6", true},
		{Change{"retention.ms", Delete, ""}, "", false},
		{Change{"cleanup.policy", Append, "delete,compact"}, "compact,delete", true},
		{Change{"cleanup.policy", Subtract, "compact"}, "", true},
		{Change{"leader.replication.throttled.replicas", Append, "0:1"}, "0:1", true},
	} {
		got, present, err := Apply(TopicResource, current, c.change)
		if got != c.want || present != c.present || err != nil {
			t.Errorf("%v: got %q %v %v", c.change, got, present, err)
		}
	}
	if got, _, err := Apply(TopicResource, nil, Change{"cleanup.policy", Append, "compact"}); got != "delete,compact" {
		t.Errorf("the default is not the start: %q %v", got, err)
	}
	if _, _, err := Apply(TopicResource, nil, Change{"retention.ms", 9, "1"}); !errors.Is(err, ErrInvalidRequest) {
		t.Errorf("got %v", err)
	}
}

func TestTopicNames(t *testing.T) {
	long := strings.Repeat("x", 250)
	for name, want := range map[string]string{
		"a.b_c-9": "", strings.Repeat("x", 249): "",
		"":    "the empty string is not allowed",
		"..":  "'..' is not allowed",
		"a b": "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
		long:  "the length of '" + long + "' is longer than the max allowed length 249",
	} {
		got, wantText := "", ""
		if err := CheckTopicName(name); err != nil {
			got = err.Error()
		}
		if want != "" {
			wantText = "Topic name is invalid: " + want
		}
		if got != wantText {
			t.Errorf("%.20s: got %s, want %s", name, got, wantText)
		}
	}
}

// Whatever a file holds, it is refused or resolved, and what is resolved can be described.
func FuzzServerProperties(f *testing.F) {
	for _, name := range []string{"default", "rich"} {
		f.Add(readFile(f, "testdata", name, "server.properties"))
	}
	f.Add([]byte("listeners=://:1\nlog.cleaner.threads=0\ncontroller.quorum.voters=@@\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		props, err := ParseProperties(data)
		if err != nil {
			return
		}
		FillStandalone(props)
		n, err := NewNode(props)
		if err != nil {
			return
		}
		if got := n.DescribeBroker(); len(got) < 340 {
			t.Errorf("%d entries", len(got))
		}
		if _, err := n.Topic(props); err == nil {
			next, _ := n.WithDynamic(props, props)
			next.DescribeClusterDefault()
		}
	})
}
