package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// everything is all keys in all versions.
func everything() []Range {
	var all []Range
	for key := range int16(200) {
		all = append(all, Range{Key: key, Min: 0, Max: 100})
	}
	return all
}

// advertised43 is what the broker listener of Kafka 4.3.1 answered to
// ApiVersions 4 (telemetry, 71 and 72, needs a plugin there).
var advertised43 = []Range{
	{0, 0, 13}, {1, 4, 18}, {2, 1, 11}, {3, 0, 13}, {8, 2, 10}, {9, 1, 10}, {10, 0, 6}, {11, 0, 9}, {12, 0, 4},
	{13, 0, 5}, {14, 0, 5}, {15, 0, 6}, {16, 0, 5}, {17, 0, 1}, {18, 0, 4}, {19, 2, 7}, {20, 1, 6}, {21, 0, 2},
	{22, 0, 5}, {23, 2, 4}, {24, 0, 5}, {25, 0, 4}, {26, 0, 5}, {27, 1, 2}, {28, 0, 5}, {29, 1, 3}, {30, 1, 3},
	{31, 1, 3}, {32, 1, 4}, {33, 0, 2}, {34, 1, 2}, {35, 1, 5}, {36, 0, 2}, {37, 0, 3}, {38, 1, 3}, {39, 1, 2},
	{40, 1, 2}, {41, 1, 3}, {42, 0, 2}, {43, 0, 2}, {44, 0, 1}, {45, 0, 1}, {46, 0, 0}, {47, 0, 0}, {48, 0, 1},
	{49, 0, 1}, {50, 0, 0}, {51, 0, 0}, {55, 0, 2}, {57, 0, 2}, {60, 0, 2}, {61, 0, 0}, {64, 0, 0}, {65, 0, 0},
	{66, 0, 2}, {68, 0, 1}, {69, 0, 1}, {74, 0, 1}, {75, 0, 0}, {76, 1, 1}, {77, 1, 1}, {78, 1, 2}, {79, 1, 2},
	{80, 0, 1}, {81, 0, 0}, {83, 0, 0}, {84, 0, 0}, {85, 0, 1}, {86, 0, 0}, {87, 0, 1}, {88, 0, 0}, {89, 0, 0},
	{90, 0, 1}, {91, 0, 0}, {92, 0, 0},
}

func TestStrictTableIsKafkas(t *testing.T) {
	var built []Range
	for _, r := range everything() {
		if r.Key != 71 && r.Key != 72 {
			built = append(built, r)
		}
	}
	table := NewTable(Strict43, built)
	if d := cmp.Diff(advertised43, table.Advertised()); d != "" {
		t.Error(d)
	}
	for _, refused := range []Range{{0, 0, 2}, {1, 0, 3}, {2, 0, 0}, {63, 0, 2}, {3, 14, 14}} {
		for v := refused.Min; v <= refused.Max; v++ {
			if table.Accepts(refused.Key, v) {
				t.Errorf("accepts key %d version %d", refused.Key, v)
			}
		}
	}
	if !table.Accepts(0, 3) || !table.Accepts(1, 18) {
		t.Error("refuses Produce 3 or Fetch 18")
	}
}

func TestFullTable(t *testing.T) {
	table := NewTable(Full, everything())
	lows := map[int16]int16{0: 0, 1: 0, 2: 0, 8: 0, 9: 0, 19: 0, 20: 0, 23: 0, 29: 0, 32: 0, 35: 0, 27: 1, 76: 1}
	for key, low := range lows {
		if !table.Accepts(key, low) || low > 0 && table.Accepts(key, low-1) {
			t.Errorf("key %d does not begin at version %d", key, low)
		}
	}
	full, strict := table.Advertised(), NewTable(Strict43, everything()).Advertised()
	if len(full) != len(strict) {
		t.Fatalf("%d and %d keys", len(full), len(strict))
	}
	for i := range full {
		if full[i].Max != strict[i].Max || full[i].Min > strict[i].Min {
			t.Errorf("key %d: %v, Kafka has %v", full[i].Key, full[i], strict[i])
		}
	}
}

// Only what is built is advertised.
func TestTableOfBuilt(t *testing.T) {
	built := []Range{{Key: 18, Max: 4}, {Key: 2, Max: 5}, {Key: 0, Min: 3, Max: 99}, {Key: 63, Max: 2}, {Key: 93, Max: 1}}
	want := []Range{{0, 0, 13}, {2, 0, 5}, {18, 0, 4}} // Produce from 0, as Kafka does
	if d := cmp.Diff(want, NewTable(Full, built).Advertised()); d != "" {
		t.Error(d)
	}
	want = []Range{{0, 0, 13}, {2, 1, 5}, {18, 0, 4}}
	if d := cmp.Diff(want, NewTable(Strict43, built).Advertised()); d != "" {
		t.Error(d)
	}
}

func TestFlexibleAgreesWithKmsg(t *testing.T) {
	for i, a := range apis {
		if i > 0 && apis[i-1].key >= a.key {
			t.Fatalf("key %d is out of order", a.key)
		}
		req := kmsg.RequestForKey(a.key)
		if req == nil || a.max > req.MaxVersion() {
			t.Fatalf("key %d: kmsg has no version %d", a.key, a.max)
		}
		for v := range a.max + 1 {
			req.SetVersion(v)
			if IsFlexible(a.key, v) != req.IsFlexible() {
				t.Errorf("key %d version %d: flexible is %v", a.key, v, IsFlexible(a.key, v))
			}
		}
		if s := schemas()[a.key]; s.flexible != a.flexible {
			t.Errorf("key %d: schema is flexible from %d, table from %d", a.key, s.flexible, a.flexible)
		}
	}
}

func TestRequestHeaders(t *testing.T) {
	id := "client"
	for _, a := range apis {
		for v := a.fullMin; v <= a.max; v++ {
			req := kmsg.RequestForKey(a.key)
			req.SetVersion(v)
			for _, clientID := range []*string{&id, nil} {
				f := kmsg.NewRequestFormatter()
				if clientID != nil {
					f = kmsg.NewRequestFormatter(kmsg.FormatterClientID(id))
				}
				frame := f.AppendRequest(nil, req, 77)[4:]
				h, body, err := ParseRequestHeader(frame)
				want := RequestHeader{Key: a.key, Version: v, CorrelationID: 77, ClientID: clientID}
				if d := cmp.Diff(want, h); err != nil || d != "" {
					t.Fatalf("key %d version %d: %v %s", a.key, v, err, d)
				}
				if want := req.AppendTo(nil); string(body) != string(want) {
					t.Fatalf("key %d version %d: body %x, want %x", a.key, v, body, want)
				}
			}
			head := AppendResponseHeader(nil, RequestHeader{Key: a.key, Version: v, CorrelationID: 0x01020304})
			want := "\x01\x02\x03\x04"
			if req.IsFlexible() && a.key != KeyApiVersions {
				want += "\x00"
			}
			if string(head) != want {
				t.Errorf("key %d version %d: response header %x", a.key, v, head)
			}
		}
	}
}

func TestParseProfile(t *testing.T) {
	for text, want := range map[string]Profile{"full": Full, "strict-4.3": Strict43} {
		if got, err := ParseProfile(text); got != want || err != nil {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	if _, err := ParseProfile("strict"); err == nil {
		t.Error("no error")
	}
}
