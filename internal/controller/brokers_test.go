package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tidemark/internal/metadata"
)

// state prints a partition as "leader@epoch isr elr last recovering".
func (k *cluster) state(topic string, id int32) string {
	p := k.image.Topic(topic).Partition(id)
	s := fmt.Sprintf("%d@%d isr=%v elr=%v last=%v", p.Leader, p.LeaderEpoch, p.ISR, p.ELR, p.LastKnownELR)
	if p.LeaderRecoveryState == metadata.LeaderRecovering {
		s += " recovering"
	}
	return s
}

func (k *cluster) expect(step, topic, want string) {
	k.t.Helper()
	if got := k.state(topic, 0); got != want {
		k.t.Errorf("%s: %s, want %s", step, got, want)
	}
}

func assignedTo(name string, brokers ...int32) NewTopic {
	return NewTopic{Name: name, Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{0, brokers}}}
}

// TestElections walks one partition through stops of its brokers.
func TestElections(t *testing.T) {
	k := newCluster(t)
	epochs := map[int32]int64{}
	for id := range int32(3) {
		epochs[id+1] = k.addBroker(id + 1)
	}
	k.create(assignedTo("a", 1, 2, 3))
	fence := func(id int32) {
		t.Helper()
		k.do(BrokerHeartbeat{BrokerID: id, BrokerEpoch: epochs[id], CurrentOffset: epochs[id], WantFence: true})
	}
	unfence := func(id int32) {
		t.Helper()
		k.do(BrokerHeartbeat{BrokerID: id, BrokerEpoch: epochs[id], CurrentOffset: epochs[id]})
	}
	k.expect("created", "a", "1@0 isr=[1 2 3] elr=[] last=[]")
	fence(1)
	k.expect("leader fenced: the next replica leads", "a", "2@1 isr=[2 3] elr=[] last=[]")
	fence(3)
	k.expect("follower fenced: no election", "a", "2@1 isr=[2] elr=[] last=[]")
	fence(2)
	k.expect("all fenced: the last one is eligible", "a", "-1@2 isr=[] elr=[2] last=[2]")
	unfence(3)
	k.expect("one that is not eligible comes back", "a", "-1@2 isr=[] elr=[2] last=[2]")
	unfence(2)
	k.expect("the eligible one comes back", "a", "2@3 isr=[2] elr=[] last=[]")

	// An unclean stop of the only one in sync: it leads again, but recovering.
	epochs[2] = k.addBroker(2)
	k.expect("unclean stop", "a", "2@5 isr=[2] elr=[] last=[] recovering")
}

func TestControlledShutdown(t *testing.T) {
	k := newCluster(t)
	one, two := k.addBroker(1), k.addBroker(2)
	k.create(assignedTo("a", 1, 2))
	k.create(assignedTo("b", 2))
	beat := BrokerHeartbeat{BrokerID: 1, BrokerEpoch: one, CurrentOffset: one, WantShutdown: true}
	if r := k.do(beat).(HeartbeatReply); !r.InControlledShutdown || r.ShouldShutDown {
		t.Errorf("first: %+v", r)
	}
	k.expect("leader moved away", "a", "2@1 isr=[2] elr=[] last=[]")
	if got := k.create(NewTopic{Name: "c", Partitions: 1, ReplicationFactor: 2}); got.Err == nil {
		t.Error("a replica was placed on a broker that shuts down")
	}
	if r := k.do(beat).(HeartbeatReply); !r.ShouldShutDown || !k.image.Broker(1).Fenced {
		t.Errorf("second: %+v", r)
	}
	k.expect("other broker's partition", "b", "2@0 isr=[2] elr=[] last=[]")
	k.do(UnregisterBroker{BrokerID: 1})
	if k.image.Broker(1) != nil || k.image.Broker(2).Epoch != two {
		t.Error("broker 1 is still registered")
	}
	if _, err := k.decide(UnregisterBroker{BrokerID: 1}); !errors.Is(err, ErrBrokerNotRegistered) {
		t.Errorf("unregistered twice: %v", err)
	}
	if _, err := k.decide(beat); !errors.Is(err, ErrStaleBrokerEpoch) {
		t.Errorf("heartbeat of an unknown broker: %v", err)
	}
}

func TestUncleanElectionWhereAllowed(t *testing.T) {
	k := newCluster(t)
	k.do(UpdateFeatures{Updates: []FeatureUpdate{{elrFeature, 0, SafeDowngrade}}})
	one, two := k.addBroker(1), k.addBroker(2)
	k.create(assignedTo("a", 1, 2))
	fence := func(id int32, epoch int64) {
		k.do(BrokerHeartbeat{BrokerID: id, BrokerEpoch: epoch, CurrentOffset: epoch, WantFence: true})
	}
	fence(2, two)
	fence(1, one)
	k.expect("without ELR the last one stays in sync", "a", "-1@1 isr=[1] elr=[] last=[]")
	k.do(BrokerHeartbeat{BrokerID: 2, BrokerEpoch: two, CurrentOffset: two})
	k.expect("not allowed", "a", "-1@1 isr=[1] elr=[] last=[]")
	fence(2, two)
	k.do(IncrementalAlterConfigs{Resources: []AlterResource{{metadata.TopicConfigs("a"),
		[]ConfigOp{{uncleanKey, OpSet, text("true")}}}}})
	k.do(BrokerHeartbeat{BrokerID: 2, BrokerEpoch: two, CurrentOffset: two})
	k.expect("allowed", "a", "2@2 isr=[2] elr=[] last=[] recovering")
}

func TestDirectories(t *testing.T) {
	k := newCluster(t)
	d1, d2 := metadata.UUID{0: 5, 15: 1}, metadata.UUID{0: 5, 15: 2}
	epoch := k.addBroker(1, d1, d2)
	a := k.create(simple("a")).ID
	dir := func() metadata.UUID {
		d, _ := k.image.Topic("a").Partition(0).Directory(1)
		return d
	}
	if dir() != metadata.DirUnassigned {
		t.Errorf("new replica on a broker with two directories: %v", dir())
	}
	res := k.do(AssignReplicasToDirs{1, epoch, []DirectoryAssignment{
		{d2, a, 0}, {d2, a, 1}, {d2, metadata.UUID{0: 1}, 0}}}).(AssignReplicasToDirsResult)
	if res.Errs[0] != nil || dir() != d2 || !errors.Is(res.Errs[1], ErrUnknownTopic) ||
		!errors.Is(res.Errs[2], ErrUnknownTopicID) {
		t.Errorf("assigned: %v %v", dir(), res.Errs)
	}
	k.expect("assigned", "a", "1@0 isr=[1] elr=[] last=[]")
	beat := BrokerHeartbeat{BrokerID: 1, BrokerEpoch: epoch, CurrentOffset: epoch, OfflineDirs: []metadata.UUID{d2}}
	k.do(beat)
	k.expect("its directory failed", "a", "-1@1 isr=[] elr=[1] last=[1]")
	if b := k.image.Broker(1); len(b.LogDirs) != 1 || b.LogDirs[0] != d1 {
		t.Errorf("online directories: %v", b.LogDirs)
	}
	if d, err := k.decide(beat); err != nil || len(d.Records) != 0 {
		t.Errorf("told again: %d records, %v", len(d.Records), err)
	}
	beat.CordonedDirs = []metadata.UUID{d1}
	k.do(beat)
	if got := k.create(simple("b")); got.Err == nil || !strings.Contains(got.Err.Message, "cordoned") {
		t.Errorf("replica on a cordoned directory: %+v", got)
	}
}

func TestRegistrationRefusals(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	good := Registration{
		BrokerID: 2, ClusterID: "4L6g3nShT-eMCtK--X86sw", IncarnationID: metadata.UUID{0: 3}, PreviousEpoch: -1,
		Features: SupportedFeatures(), LogDirs: []metadata.UUID{{0: 9, 15: 2}},
	}
	for _, tt := range []struct {
		name   string
		change func(*RegisterBroker)
		reason error
		text   string
	}{
		{"cluster", func(r *RegisterBroker) { r.ClusterID = "x" }, ErrInconsistentClusterID,
			"Expected cluster ID 4L6g3nShT-eMCtK--X86sw, but got cluster ID x"},
		{"no dirs", func(r *RegisterBroker) { r.LogDirs = nil }, ErrInvalidRegistration,
			"No directories specified in request"},
		{"reserved dir", func(r *RegisterBroker) { r.LogDirs = []metadata.UUID{metadata.DirLost} }, ErrInvalidRegistration,
			"Reserved directory ID in request"},
		{"same dir twice", func(r *RegisterBroker) { r.LogDirs = append(r.LogDirs, r.LogDirs[0]) }, ErrInvalidRegistration,
			"Duplicate directory ID in request"},
		{"dir of broker 1", func(r *RegisterBroker) { r.LogDirs = []metadata.UUID{{0: 9, 15: 1}} }, ErrInvalidRegistration,
			"Broker 1 is already registered with directory " + metadata.UUID{0: 9, 15: 1}.String()},
		{"no metadata.version", func(r *RegisterBroker) { r.Features = r.Features[:2] }, ErrInvalidRegistration,
			"Request features do not contain 'metadata.version'"},
		{"old metadata.version", func(r *RegisterBroker) { r.Features[3].Max = 29 }, ErrUnsupportedVersion,
			"Unable to register because the broker does not support finalized version 30 of metadata.version. " +
				"The broker wants a version between 7 and 29, inclusive."},
		{"no transactions", func(r *RegisterBroker) { r.Features = r.Features[:6] }, ErrUnsupportedVersion,
			"Unable to register because the broker does not support finalized version 2 of transaction.version. " +
				"The broker wants a version between 0 and 0, inclusive."},
		{"lives already", func(r *RegisterBroker) { r.BrokerID, r.HasSession = 1, true }, ErrDuplicateBrokerRegistration,
			"Another broker is registered with that broker id. If the broker was recently restarted this should " +
				"self-resolve once the heartbeat manager expires the broker's session."},
	} {
		cmd := RegisterBroker{Registration: good}
		cmd.Features = SupportedFeatures()
		tt.change(&cmd)
		_, err := k.decide(cmd)
		if !errors.Is(err, tt.reason) || err.Error() != tt.text {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestSameIncarnationKeepsItsEpoch(t *testing.T) {
	k := newCluster(t)
	epoch := k.addBroker(1)
	b := k.image.Broker(1)
	got := k.do(RegisterBroker{Registration: Registration{
		BrokerID: 1, ClusterID: "4L6g3nShT-eMCtK--X86sw", IncarnationID: b.IncarnationID, Features: SupportedFeatures(),
		LogDirs: b.LogDirs, PreviousEpoch: -1,
	}})
	if got != (BrokerRegistered{epoch}) || k.image.Broker(1).Fenced {
		t.Errorf("%+v, %+v", got, k.image.Broker(1))
	}
}

func TestProducerIDs(t *testing.T) {
	k := newCluster(t)
	epoch := k.addBroker(1)
	for want := int64(0); want < 3000; want += 1000 {
		if got := k.do(AllocateProducerIDs{1, epoch}); got != (ProducerIDBlock{want, 1000}) {
			t.Errorf("%+v, want %d", got, want)
		}
	}
	if _, err := k.decide(AllocateProducerIDs{1, epoch + 1}); !errors.Is(err, ErrStaleBrokerEpoch) {
		t.Errorf("stale epoch: %v", err)
	}
}

func TestUpdateFeatures(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	const prefix = "The update failed for all features since the following feature had an error: "
	for _, tt := range []struct {
		update FeatureUpdate
		text   string // "" = done
	}{
		{FeatureUpdate{"transaction.version", 3, Upgrade},
			"Invalid update version 3 for feature transaction.version. Local controller 1 only supports versions 0-2"},
		{FeatureUpdate{"nope", 1, Upgrade},
			"Invalid update version 1 for feature nope. Local controller 1 does not support this feature."},
		{FeatureUpdate{"transaction.version", -1, Upgrade},
			"Invalid update version -1 for feature transaction.version. A feature version cannot be less than 0."},
		{FeatureUpdate{"transaction.version", 1, 0},
			"Invalid update version 1 for feature transaction.version. The controller does not support the given upgrade type."},
		{FeatureUpdate{"transaction.version", 1, Upgrade},
			"Invalid update version 1 for feature transaction.version. Can't downgrade the version of this feature " +
				"without setting the upgrade type to either safe or unsafe downgrade."},
		{FeatureUpdate{"transaction.version", 1, SafeDowngrade}, ""},
		{FeatureUpdate{"transaction.version", 2, SafeDowngrade},
			"Invalid update version 2 for feature transaction.version. Can't downgrade to a newer version."},
		{FeatureUpdate{"group.version", 0, UnsafeDowngrade}, ""},
		{FeatureUpdate{"metadata.version", 29, SafeDowngrade}, "Unsupported metadata.version downgrade from 30 to 29. " +
			"Refusing to perform the requested downgrade because it might delete metadata information."},
		{FeatureUpdate{"metadata.version", 29, UnsafeDowngrade}, "Unsupported metadata.version downgrade from 30 to 29. " +
			"Unsafe metadata downgrade is not supported in this version."},
		{FeatureUpdate{"metadata.version", 30, Upgrade}, ""},
	} {
		d, err := k.decide(UpdateFeatures{Updates: []FeatureUpdate{tt.update}})
		switch {
		case tt.text == "" && err == nil:
			k.apply(d)
			if got := k.image.FeatureLevel(tt.update.Name); got != tt.update.Level {
				t.Errorf("%+v: level %d", tt.update, got)
			}
		case err == nil || err.Error() != prefix+tt.text || !errors.Is(err, ErrInvalidUpdateVersion):
			t.Errorf("%+v\n got %v\nwant %s", tt.update, err, tt.text)
		}
	}
}
