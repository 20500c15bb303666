package metadata

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawer draws small values, so that random records hit the same topics and
// brokers.
type drawer struct{ *rapid.T }

func (d drawer) int(max int) int     { return rapid.IntRange(0, max).Draw(d.T, "n") }
func (d drawer) bool() bool          { return d.int(1) == 1 }
func (d drawer) int32() int32        { return int32(d.int(3)) }
func (d drawer) int64() int64        { return int64(d.int(3)) }
func (d drawer) uuid() UUID          { return UUID{0: 1, 15: byte(d.int(3))} }
func (d drawer) string() string      { return string(rune('a' + d.int(3))) }
func (d drawer) nullable() *string   { return orNil(d, d.string()) }
func (d drawer) int32s() []int32     { return list(d, d.int32) }
func (d drawer) nullable32() []int32 { return pick(d, nil, d.int32s()) }

func orNil[T any](d drawer, v T) *T { return pick(d, nil, &v) }

func pick[T any](d drawer, a, b T) T {
	if d.bool() {
		return a
	}
	return b
}

func list[T any](d drawer, f func() T) []T {
	v := make([]T, d.int(3))
	for i := range v {
		v[i] = f()
	}
	return v
}

func (d drawer) endpoint() Endpoint {
	return Endpoint{Name: d.string(), Host: d.string(), Port: uint16(d.int(65535)), SecurityProtocol: int16(d.int(3))}
}

func (d drawer) feature() FeatureRange {
	return FeatureRange{Name: d.string(), Min: int16(d.int(3)), Max: int16(d.int(3))}
}

// randomBody draws a record of any kind at its newest version; transaction
// markers are left out.
func randomBody(t *rapid.T) Body {
	d := drawer{t}
	switch d.int(3) {
	case 0:
		return d.clusterBody()
	case 1:
		return d.securityBody()
	default:
		return d.topicBody()
	}
}

func (d drawer) topicBody() Body {
	switch d.int(6) {
	case 0:
		return &TopicRecord{Name: d.string(), TopicID: d.uuid()}
	case 1:
		r := &PartitionRecord{
			PartitionID: d.int32(), TopicID: d.uuid(), Replicas: d.int32s(), ISR: d.int32s(),
			RemovingReplicas: d.int32s(), AddingReplicas: d.int32s(), Leader: d.int32(),
			LeaderRecoveryState: int8(d.int(1)), LeaderEpoch: d.int32(), PartitionEpoch: d.int32(),
			EligibleLeaderReplicas: d.nullable32(), LastKnownELR: d.nullable32(),
		}
		r.Directories = make([]UUID, len(r.Replicas))
		return r
	case 2, 3:
		return &PartitionChangeRecord{
			PartitionID: d.int32(), TopicID: d.uuid(), ISR: d.nullable32(), Leader: int32(d.int(5)) - 2,
			RemovingReplicas: d.nullable32(), AddingReplicas: d.nullable32(), LeaderRecoveryState: int8(d.int(2)) - 1,
			EligibleLeaderReplicas: d.nullable32(), LastKnownELR: d.nullable32(),
		}
	case 4:
		return &RemoveTopicRecord{TopicID: d.uuid()}
	case 5:
		return &ClearELRRecord{TopicName: pick(d, "", d.string())}
	default:
		return &ConfigRecord{
			ResourceType: pick(d, ResourceTopic, ResourceBroker), ResourceName: d.string(),
			Name: d.string(), Value: d.nullable(),
		}
	}
}

func (d drawer) clusterBody() Body {
	switch d.int(7) {
	case 0:
		return &RegisterBrokerRecord{
			BrokerID: d.int32(), IsMigratingZkBroker: d.bool(), IncarnationID: d.uuid(), BrokerEpoch: d.int64(),
			EndPoints: list(d, d.endpoint), Features: list(d, d.feature), Rack: d.nullable(), Fenced: d.bool(),
			InControlledShutdown: d.bool(), LogDirs: list(d, d.uuid), CordonedLogDirs: pick(d, nil, list(d, d.uuid)),
		}
	case 1:
		return &UnregisterBrokerRecord{BrokerID: d.int32(), BrokerEpoch: d.int64()}
	case 2:
		return &FenceBrokerRecord{ID: d.int32(), Epoch: d.int64()}
	case 3:
		return &UnfenceBrokerRecord{ID: d.int32(), Epoch: d.int64()}
	case 4:
		return &BrokerRegistrationChangeRecord{
			BrokerID: d.int32(), BrokerEpoch: d.int64(), Fenced: int8(d.int(2)) - 1,
			InControlledShutdown: int8(d.int(1)), LogDirs: list(d, d.uuid), CordonedLogDirs: pick(d, nil, list(d, d.uuid)),
		}
	case 5:
		return &RegisterControllerRecord{
			ControllerID: d.int32(), IncarnationID: d.uuid(), ZkMigrationReady: d.bool(),
			EndPoints: list(d, d.endpoint), Features: list(d, d.feature),
		}
	case 6:
		return &FeatureLevelRecord{Name: d.string(), FeatureLevel: int16(d.int(2))}
	default:
		return &ProducerIDsRecord{BrokerID: d.int32(), BrokerEpoch: d.int64(), NextProducerID: d.int64() * 1000}
	}
}

func (d drawer) securityBody() Body {
	switch d.int(6) {
	case 0:
		return &ClientQuotaRecord{
			Entity: list(d, func() QuotaEntity { return QuotaEntity{Type: d.string(), Name: d.nullable()} }),
			Key:    d.string(), Value: float64(d.int(9)) / 2, Remove: d.bool(),
		}
	case 1:
		return &UserScramCredentialRecord{
			Name: d.string(), Mechanism: int8(1 + d.int(1)), Salt: []byte(d.string()),
			StoredKey: []byte{}, ServerKey: []byte(d.string()), Iterations: 4096,
		}
	case 2:
		return &RemoveUserScramCredentialRecord{Name: d.string(), Mechanism: int8(1 + d.int(1))}
	case 3:
		return &AccessControlEntryRecord{
			ID: d.uuid(), ResourceType: 2, ResourceName: d.string(), PatternType: 3, Principal: d.string(),
			Host: d.string(), Operation: int8(d.int(12)), PermissionType: 3,
		}
	case 4:
		return &RemoveAccessControlEntryRecord{ID: d.uuid()}
	case 5:
		return &DelegationTokenRecord{
			Owner: d.string(), Requester: d.string(), Renewers: list(d, d.string),
			IssueTimestamp: d.int64(), MaxTimestamp: d.int64(), ExpirationTimestamp: d.int64(), TokenID: d.string(),
		}
	default:
		return &RemoveDelegationTokenRecord{TokenID: d.string()}
	}
}

// TestRecordRoundTrip encodes and decodes random records in random versions: the
// result is the same record, or the version cannot carry it.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := randomBody(t)
		newest := body.Kind().NewestVersion()
		rec := Record{Version: int16(rapid.IntRange(0, int(newest)).Draw(t, "version")), Body: body}
		value, err := rec.AppendTo(nil)
		if err != nil {
			if rec.Version == newest {
				t.Fatal(err)
			}
			return
		}
		got, err := DecodeRecord(value)
		if err != nil {
			t.Fatal(err)
		}
		equateEmpty := cmp.FilterValues(func(a, b []UUID) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
		if diff := cmp.Diff(rec, got, equateEmpty); diff != "" {
			t.Fatal(diff)
		}
		for n := range value {
			if _, err := DecodeRecord(value[:n]); err == nil {
				t.Fatalf("the first %d of %d bytes decode", n, len(value))
			}
		}
	})
}

func TestEveryKindHasDefaults(t *testing.T) {
	for kind, d := range kinds {
		for version := range d.newest + 1 {
			body := d.empty()
			if body.Kind() != kind {
				t.Fatalf("%v makes a %v", kind, body.Kind())
			}
			value, err := Record{Version: version, Body: body}.AppendTo(nil)
			must(t, err)
			got, err := DecodeRecord(value)
			must(t, err)
			if again, _ := got.AppendTo(nil); !bytes.Equal(again, value) {
				t.Errorf("%v version %d: %x, again %x", kind, version, value, again)
			}
		}
	}
	if len(kinds) != 27 {
		t.Errorf("%d kinds", len(kinds))
	}
}

func TestDecodeRefuses(t *testing.T) {
	var unknown *UnknownRecordError
	var malformed *MalformedRecordError
	for _, tt := range []struct {
		name   string
		value  []byte
		target any
	}{
		{"empty", nil, &malformed},
		{"frame version", []byte{2, 20, 0, 0}, &malformed},
		{"kind without a record", []byte{1, 6, 0, 0}, &unknown},
		{"huge kind", []byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0}, &unknown},
		{"newer version", []byte{1, 20, 1, 0}, &unknown},
		{"trailing bytes", []byte{1, 20, 0, 0, 0}, &malformed},
		{"null string", []byte{1, 4, 0, 2, 0, 1, 0, 0}, &malformed},
		{"array longer than the input", []byte{1, 0, 0, 0, 0, 0, 1}, &malformed},
		{"tag with bytes left", []byte{1, 17, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 2, 1, 1}, &malformed},
	} {
		if _, err := DecodeRecord(tt.value); !errors.As(err, tt.target) {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
	if _, err := (Record{Version: 1, Body: &NoOpRecord{}}).AppendTo(nil); !errors.As(err, &unknown) {
		t.Errorf("encoding of an unknown version: %v", err)
	}
	r := &BrokerRegistrationChangeRecord{InControlledShutdown: 1}
	if _, err := (Record{Version: 0, Body: r}).AppendTo(nil); err == nil {
		t.Errorf("a field was dropped silently")
	}
}

// TestUnknownTagsArePassedOver decodes a record with a tag of a later version.
func TestUnknownTagsArePassedOver(t *testing.T) {
	rec, err := DecodeRecord([]byte{1, 17, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 1, 1, 9, 1, 5})
	must(t, err)
	if r := rec.Body.(*BrokerRegistrationChangeRecord); r.Fenced != Fence || r.BrokerEpoch != 2 {
		t.Errorf("%+v", r)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, file := range kafkaFiles(f) {
		_, raw := readBatches(f, file)
		for _, value := range raw {
			f.Add(value)
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		rec, err := DecodeRecord(value)
		if err != nil {
			return
		}
		encoded, err := rec.AppendTo(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeRecord(encoded)
		if err != nil {
			t.Fatalf("own encoding does not decode: %v", err)
		}
		if twice, _ := again.AppendTo(nil); !bytes.Equal(twice, encoded) {
			t.Fatalf("encodings differ: %x %x", encoded, twice)
		}
	})
}
