package record

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestControlMessages(t *testing.T) {
	id := [16]byte{1, 15: 2}
	for _, c := range []struct {
		m    ControlMessage
		name string
		hex  string
	}{
		{EndTxn{Commit: false}, "ABORT", "000000000000"},
		{EndTxn{Commit: true, CoordinatorEpoch: 7}, "COMMIT", "000000000007"},
		{LeaderChange{LeaderID: 1, Voters: []Voter{{ID: 1}}, GrantingVoters: []Voter{{ID: 1}}}, "LEADER_CHANGE",
			"0000000000010200000001000200000001" + "0000"},
		{LeaderChange{Version: 1, LeaderID: 1, Voters: []Voter{{1, id}}, GrantingVoters: []Voter{}}, "LEADER_CHANGE",
			"00010000000102000000010100000000000000000000000000000200" + "0100"},
		{SnapshotHeader{LastContainedLogTimestamp: 5}, "SNAPSHOT_HEADER", "0000000000000000000500"},
		{SnapshotFooter{}, "SNAPSHOT_FOOTER", "000000"},
		{KRaftVersion{KRaftVersion: 1}, "KRAFT_VERSION", "0000000100"},
		{Voters{Voters: []VoterInfo{
			{Voter: Voter{3, id}, Endpoints: []Endpoint{{"C", "h", 9093}}, MaxKRaftVersion: 1},
		}},
			"KRAFT_VOTERS", "000002" + "00000003" + hex.EncodeToString(id[:]) + "02" + "0243" + "0268" + "2385" + "00" +
				"00000001" + "00" + "00" + "00"},
	} {
		if got := hex.EncodeToString(c.m.AppendTo(nil)); got != c.hex {
			t.Errorf("%+v encodes to %s, want %s", c.m, got, c.hex)
		}
		kind, m, err := ParseControl(ControlKey(c.m.ControlType()), unhex(t, c.hex))
		if err != nil || kind.String() != c.name {
			t.Errorf("%+v: %v, %v", c.m, kind, err)
		}
		if l, ok := c.m.(LeaderChange); ok && len(l.GrantingVoters) == 0 {
			l.GrantingVoters = nil
			c.m = l
		}
		if diff := cmp.Diff(c.m, m); diff != "" {
			t.Errorf("parsed (-want +got):\n%s", diff)
		}
	}
}

func TestControlErrors(t *testing.T) {
	for name, c := range map[string]struct{ key, value string }{
		"short key":            {"000000", "000000000000"},
		"negative key version": {"ffff0000", "000000000000"},
		"short marker":         {"00000001", "0000000000"},
		"negative version":     {"00000001", "ffff00000000"},
		"voters beyond":        {"00000006", "0000ff"},
		"leader change cut":    {"00000002", "000000000001020000"},
	} {
		_, m, err := ParseControl(unhex(t, c.key), unhex(t, c.value))
		var bad *InvalidRecordError
		if m != nil || !errors.As(err, &bad) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	if kind, m, err := ParseControl(unhex(t, "00000009"), nil); m != nil || err != nil || kind.String() != "UNKNOWN" {
		t.Errorf("a type of the future: %v, %v, %v", kind, m, err)
	}
}

// The 78 bytes of a marker of spec/storage.md §2.3.
func TestEndTxnMarker(t *testing.T) {
	o := DefaultBuilderOptions()
	o.BaseOffset, o.LeaderEpoch, o.ProducerID, o.ProducerEpoch = 5, 1, 4000, 2
	for commit, body := range map[bool]string{
		false: "2000000008000000000c00000000000000",
		true:  "2000000008000000010c00000000000000",
	} {
		b, err := EndTxnMarker(o, 1234, EndTxn{Commit: commit})
		if err != nil {
			t.Fatal(err)
		}
		if hex.EncodeToString(b.Body()) != body || len(b) != 78 || b.Attributes() != 0x30 || !b.ValidCRC() ||
			b.BaseTimestamp() != 1234 || b.MaxTimestamp() != 1234 || b.BaseSequence() != -1 || b.ProducerID() != 4000 {
			t.Errorf("marker %x: %+v", []byte(b), b.Header())
		}
	}
}
