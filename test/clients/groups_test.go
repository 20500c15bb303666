//go:build oracle

package clients

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// assignor is how the members of a group share partitions.
type assignor struct {
	protocol string // "classic": a member decides, "consumer": the broker does
	name     string
}

func (a assignor) String() string { return a.protocol + "-" + a.name }

// members are consumers of one group, polled in turns.
type members struct {
	r        *run
	topic    string
	read     map[string]bool     // values, by any member
	assigned map[string][]string // what each has at its last poll
}

func (m *members) join(t *testing.T, id string, a assignor, instance string) {
	t.Helper()
	m.r.call(t, request{Do: "consumer", ID: id, Group: m.topic, Topics: []string{m.topic}, Protocol: a.protocol,
		Assignor: a.name, Instance: instance})
	m.assigned[id] = nil
}

func (m *members) leave(t *testing.T, id string) {
	t.Helper()
	m.r.call(t, request{Do: "close", ID: id})
	delete(m.assigned, id)
}

// until polls all members, again and again, until a condition holds.
func (m *members) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for _, id := range slices.Sorted(maps.Keys(m.assigned)) {
			a := m.r.call(t, request{Do: "poll", ID: id})
			m.assigned[id] = a.Assigned
			for _, rec := range a.Records {
				m.read[short(rec.Value)] = true
			}
		}
		if holds() {
			return
		}
	}
	t.Fatalf("no end of waiting for %s: read %d values, assigned %q; the log:\n%s", what, len(m.read), m.assigned,
		m.r.log())
}

// shared waits until the members have the partitions of the topic, so many each, and none twice.
func (m *members) shared(t *testing.T, each int) {
	t.Helper()
	m.until(t, fmt.Sprintf("%d partitions each", each), func() bool {
		all := make(map[string]bool)
		for _, partitions := range m.assigned {
			if partitions == nil && m.r.client.silent {
				return true // its client does not tell; the values that are read do
			}
			if len(partitions) != each {
				return false
			}
			for _, p := range partitions {
				all[p] = true
			}
		}
		return len(all) == partitions
	})
}

// partitions is how many the topic of a group has.
const partitions = 4

// send produces two values to each partition, and waits until they are read.
func (m *members) send(t *testing.T, name string) {
	t.Helper()
	for p := range partitions {
		m.r.call(t, request{Do: "produce", ID: m.topic, Topic: m.topic, Partition: p,
			Values: values(fmt.Sprintf("%s %d", name, p), 0, 2)})
	}
	m.until(t, "values "+name, func() bool {
		n := 0
		for v := range m.read {
			if strings.HasPrefix(v, name+" ") {
				n++
			}
		}
		return n == 2*partitions
	})
}

func (r *run) newMembers(t *testing.T, name string) *members {
	t.Helper()
	r.create(t, partitions, name)
	m := &members{r: r, topic: r.topic(name), read: map[string]bool{}, assigned: map[string][]string{}}
	r.call(t, request{Do: "producer", ID: m.topic})
	return m
}

// group lets a second member join and leave: the partitions are shared anew each time, and everything is read.
func (r *run) group(t *testing.T, a assignor) {
	m := r.newMembers(t, "group-"+a.String())
	one, two := m.topic+"-one", m.topic+"-two"
	m.join(t, one, a, "")
	m.shared(t, 4)
	m.send(t, "alone")
	m.join(t, two, a, "")
	r.judge.membersWhile(t, m, a.protocol, 2)
	m.shared(t, 2)
	m.send(t, "together")
	m.leave(t, two)
	m.shared(t, 4)
	m.send(t, "again")
	r.call(t, request{Do: "commit", ID: one})
	m.leave(t, one)
	r.judge.members(t, m.topic, a.protocol, 0)
	for p := range partitions {
		if got := r.judge.committed(t, m.topic, m.topic, int32(p)); got != 6 {
			t.Errorf("the group's offset of partition %d is %d, want 6", p, got)
		}
	}
}

// membersWhile is members while they are polled.
func (j *judge) membersWhile(t *testing.T, m *members, protocol string, want int) {
	t.Helper()
	m.until(t, fmt.Sprintf("%d members", want), func() bool {
		n, err := j.count(t, m.topic, protocol)
		return err == nil && n == want
	})
}

// static lets a member with a name of its own go and come back: it is still a member, and has what it had.
func (r *run) static(t *testing.T, protocol string) {
	a := assignor{protocol: protocol}
	m := r.newMembers(t, "static-"+protocol)
	one, two := m.topic+"-one", m.topic+"-two"
	m.join(t, one, a, "instance-1")
	m.join(t, two, a, "instance-2")
	m.shared(t, 2)
	m.send(t, "before")
	had := m.assigned[two]
	m.leave(t, two)
	for range 3 {
		r.call(t, request{Do: "poll", ID: one})
		r.judge.members(t, m.topic, protocol, 2)
	}
	m.join(t, two, a, "instance-2")
	m.shared(t, 2)
	if got := m.assigned[two]; !slices.Equal(got, had) {
		t.Errorf("the static member has %q, and had %q", got, had)
	}
	m.send(t, "after")
	m.leave(t, one)
	m.leave(t, two)
}

// pattern subscribes to all topics whose names a pattern matches.
func (r *run) pattern(t *testing.T, protocol string) {
	name := "pattern-" + protocol
	id, topics := r.topic(name), []string{name + ".1", name + ".2"}
	r.create(t, 1, topics...)
	r.call(t, request{Do: "producer", ID: id})
	for _, topic := range topics {
		r.call(t, request{Do: "produce", ID: id, Topic: r.topic(topic), Values: []string{topic}})
	}
	r.call(t, request{Do: "consumer", ID: id + "-c", Group: id, Pattern: "^" + r.topic(name) + `\..*`, Protocol: protocol})
	got := valuesOf(r.pollUntil(t, id+"-c", atLeast(2)))
	if slices.Sort(got); !slices.Equal(got, topics) {
		t.Errorf("read %q, want %q", got, topics)
	}
	r.call(t, request{Do: "close", ID: id + "-c"})
}
