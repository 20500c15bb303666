//go:build oracle

package differential

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// hostileWait is how long an outcome may take. A server that neither answers nor closes waits for more bytes.
// Where the two differ it may have been too short, and the outcome is looked at again with a longer one.
const (
	hostileWait = 700 * time.Millisecond
	longHostile = 10 * time.Second
)

// header is a request header of version 1: key, version, correlation id, client id.
func header(key, version int16, correlation int32, client string) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	b = binary.BigEndian.AppendUint16(b, uint16(len(client)))
	return append(b, client...)
}

// hostile are bytes that no client sends.
func hostile() map[string][]byte {
	good := kmsg.NewRequestFormatter().AppendRequest(nil, metadataAll(1), 1)
	out := map[string][]byte{
		"size -1":                 {0xff, 0xff, 0xff, 0xff},
		"size 0":                  {0, 0, 0, 0},
		"size 2^31-1":             {0x7f, 0xff, 0xff, 0xff},
		"size 100 MiB + 1":        {0x06, 0x40, 0, 1},
		"HTTP":                    []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		"TLS hello":               {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"half a size":             {0, 0},
		"half a frame":            good[:len(good)-1],
		"empty frame then good":   append([]byte{0, 0, 0, 0}, good...),
		"header cut":              frame([]byte{0, 3, 0, 1}),
		"no client id":            frame([]byte{0, 3, 0, 1, 0, 0, 0, 1}),
		"client id of -2":         frame([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xfe}),
		"client id past the end":  frame([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0, 50, 'a'}),
		"unknown key":             frame(header(999, 0, 1, "x")),
		"key -1":                  frame(header(-1, 0, 1, "x")),
		"removed key 4":           frame(header(4, 0, 1, "x")),
		"Metadata v99":            frame(header(3, 99, 1, "x")),
		"Metadata v-1":            frame(header(3, -1, 1, "x")),
		"ApiVersions v99":         frame(append(header(18, 99, 1, "x"), 0)),
		"ApiVersions v99, no tag": frame(header(18, 99, 1, "x")),
		"ApiVersions v-1":         frame(header(18, -1, 1, "x")),
		"ApiVersions v0, body":    frame(append(header(18, 0, 1, "x"), 1, 2, 3)),
		"ApiVersions v3, no body": frame(append(header(18, 3, 1, "x"), 0)),
		"body missing":            frame(header(3, 1, 1, "x")),
		"body cut":                frame(append(header(3, 1, 1, "x"), 0, 0, 0)),
		"array of 2^31-1":         frame(append(header(3, 1, 1, "x"), 0x7f, 0xff, 0xff, 0xff)),
		"array of -5":             frame(append(header(3, 1, 1, "x"), 0xff, 0xff, 0xff, 0xfb)),
		"bytes after the body":    frame(append(header(3, 1, 1, "x"), 0, 0, 0, 0, 9, 9)),
		"string of -1":            frame(append(header(3, 1, 1, "x"), 0, 0, 0, 1, 0xff, 0xff)),
		"string past the end":     frame(append(header(3, 1, 1, "x"), 0, 0, 0, 1, 0, 9, 'a')),
		"endless varint":          frame(append(header(3, 9, 1, "x"), 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)),
		"many tags":               frame(append(header(3, 9, 1, "x"), 0xff, 0xff, 0xff, 0xff, 0x0f)),
		"header tag":              frame(append(header(3, 9, 1, "x"), 1, 200, 1, 3, 'a', 'b', 'c', 1, 0, 0, 0, 0)),
	}
	for key := int16(0); key < 5; key++ {
		out[fmt.Sprintf("key %d, zeros", key)] = frame(append(header(key, 4, 1, "x"), make([]byte, 40)...))
		out[fmt.Sprintf("key %d, ones", key)] = frame(append(header(key, 4, 1, "x"), bytes.Repeat([]byte{0xff}, 40)...))
	}
	return out
}

func metadataAll(version int16) kmsg.Request {
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(version)
	return req
}

// hostileOutcome sends bytes on a connection of their own and tells what came of it.
func (s *side) hostileOutcome(t *testing.T, data []byte, wait time.Duration) string {
	t.Helper()
	c := dial(t, s.Addr)
	defer c.close()
	c.timeout = wait
	if _, err := c.c.Write(data); err != nil {
		return closedOutcome
	}
	got, outcome := c.readFrame()
	if outcome != "" {
		return outcome
	}
	if len(got) > 32 { // a whole answer with ids and ports in it: compared elsewhere
		return "a long answer"
	}
	return "answer " + hex.EncodeToString(got)
}

func (w *world) hostileOutcomes(t *testing.T, data []byte) (kafka, tidemark string) {
	t.Helper()
	for _, wait := range []time.Duration{hostileWait, longHostile} {
		kafka, tidemark = w.sides[0].hostileOutcome(t, data, wait), w.sides[1].hostileOutcome(t, data, wait)
		if kafka == tidemark {
			break
		}
	}
	return kafka, tidemark
}

func (w *world) testHostileBytes(t *testing.T) {
	for name, data := range hostile() {
		if kafka, tidemark := w.hostileOutcomes(t, data); kafka != tidemark {
			t.Errorf("%s: Kafka %s; Tidemark %s", name, kafka, tidemark)
		}
	}
	seed := int64(20261130)
	random := rand.New(rand.NewSource(seed))
	for i := range 20 {
		body := make([]byte, 10+random.Intn(200))
		random.Read(body)
		copy(body, header(int16(random.Intn(76)), int16(random.Intn(14)), 1, ""))
		data := frame(body)
		if kafka, tidemark := w.hostileOutcomes(t, data); kafka != tidemark {
			t.Errorf("random frame %d of seed %d, %x: Kafka %s; Tidemark %s", i, seed, data, kafka, tidemark)
		}
	}
	w.same(t, "both still serve", metadata(12, []string{}, false), hide("ClusterID"))
}
