package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/metadata"
)

func name(s string) *string { return &s }

func TestClientQuotaFilter(t *testing.T) {
	w := newWorld(t)
	user := func(s *string) metadata.QuotaEntity { return metadata.QuotaEntity{Type: "user", Name: s} }
	client := func(s *string) metadata.QuotaEntity { return metadata.QuotaEntity{Type: "client-id", Name: s} }
	for _, entity := range [][]metadata.QuotaEntity{{user(name("u"))}, {user(nil)}, {user(name("u")), client(name("c"))},
		{client(nil)}, {{Type: "ip", Name: name("10.0.0.1")}}} {
		w.replay(&metadata.ClientQuotaRecord{Entity: entity, Key: "request_percentage", Value: 5})
	}
	component := func(kind string, how int8, match *string) kmsg.DescribeClientQuotasRequestComponent {
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: kmsg.QuotasMatchType(how), Match: match}
	}
	type components = []kmsg.DescribeClientQuotasRequestComponent
	for _, test := range []struct {
		name   string
		filter components
		strict bool
		want   int // entities; -1: an error
	}{
		{"all", nil, false, 5},
		{"nothing else", nil, true, 0},
		{"u", components{component("user", 0, name("u"))}, false, 2},
		{"u alone", components{component("user", 0, name("u"))}, true, 1},
		{"default user", components{component("user", 1, nil)}, false, 1},
		{"any user", components{component("user", 2, nil)}, false, 3},
		{"any user of any client", components{component("user", 2, nil), component("client-id", 2, nil)}, true, 1},
		{"ip with user", components{component("user", 2, nil), component("ip", 2, nil)}, false, -1},
		{"twice", components{component("user", 2, nil), component("user", 1, nil)}, false, -1},
		{"exact without a name", components{component("user", 0, nil)}, false, -1},
		{"unknown way", components{component("user", 7, nil)}, false, -1},
	} {
		req := kmsg.NewPtrDescribeClientQuotasRequest()
		req.SetVersion(1)
		req.Components, req.Strict = test.filter, test.strict
		r := ask[*kmsg.DescribeClientQuotasResponse](w, req)
		if got := len(r.Entries); r.ErrorCode == 0 && got != test.want || r.ErrorCode != 0 != (test.want < 0) {
			t.Errorf("%s: %d entities, error %d", test.name, got, r.ErrorCode)
		}
	}
}

func TestScramCredentialsAreTold(t *testing.T) {
	w := newWorld(t)
	w.replay(&metadata.UserScramCredentialRecord{Name: "a", Mechanism: 1, Iterations: 4096},
		&metadata.UserScramCredentialRecord{Name: "a", Mechanism: 2, Iterations: 8192})
	req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	for _, u := range []string{"a", "b", "c", "c"} {
		req.Users = append(req.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: u})
	}
	r := ask[*kmsg.DescribeUserSCRAMCredentialsResponse](w, req)
	var got []string
	for _, u := range r.Results {
		got = append(got, fmt.Sprint(u.User, u.ErrorCode, len(u.CredentialInfos)))
	}
	if want := []string{"a0 2", "b91 0", "c92 0"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLogDirectories(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 2, self)
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.SetVersion(5)
	r := ask[*kmsg.DescribeLogDirsResponse](w, req)
	if len(r.Dirs) != 1 || r.Dirs[0].Dir != "/data" || len(r.Dirs[0].Topics) != 1 ||
		len(r.Dirs[0].Topics[0].Partitions) != 2 || r.Dirs[0].TotalBytes != -1 {
		t.Errorf("described: %+v", r.Dirs)
	}
	for _, test := range []struct {
		dir, topic string
		partition  int32
		want       int16
	}{
		{"/data", "t", 0, 0}, {"/data", "t", 9, 3}, {"/other", "t", 0, 57}, {"data", "t", 0, 57}, {"/data", "nope", 0, 3},
		{"/data", strings.Repeat("x", 240), 0, 17},
	} {
		alter := kmsg.NewPtrAlterReplicaLogDirsRequest()
		alter.SetVersion(2)
		alter.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: test.dir, Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{
			{Topic: test.topic, Partitions: []int32{test.partition}}}}}
		a := ask[*kmsg.AlterReplicaLogDirsResponse](w, alter)
		if got := a.Topics[0].Partitions[0].ErrorCode; got != test.want {
			t.Errorf("%s to %s: error %d, want %d", test.topic, test.dir, got, test.want)
		}
	}
}

func TestListReassignments(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, self)
	w.replay(&metadata.TopicRecord{Name: "moving", TopicID: topicID("moving")}, &metadata.PartitionRecord{PartitionID: 0,
		TopicID: topicID("moving"), Replicas: []int32{2, 1}, ISR: []int32{1}, AddingReplicas: []int32{2},
		RemovingReplicas: []int32{1}, Leader: 1})
	for _, topics := range [][]kmsg.ListPartitionReassignmentsRequestTopic{
		nil, {{Topic: "moving", Partitions: []int32{0, 5}}, {Topic: "t", Partitions: []int32{0}}, {Topic: "nope"}},
	} {
		req := kmsg.NewPtrListPartitionReassignmentsRequest()
		req.Topics = topics
		r := ask[*kmsg.ListPartitionReassignmentsResponse](w, req)
		if len(r.Topics) != 1 || r.Topics[0].Topic != "moving" || len(r.Topics[0].Partitions) != 1 ||
			!slices.Equal(r.Topics[0].Partitions[0].AddingReplicas, []int32{2}) {
			t.Errorf("got %+v", r.Topics)
		}
	}
}
