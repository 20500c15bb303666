package auth

import (
	"slices"
	"testing"
)

func TestPrincipalString(t *testing.T) {
	if got := Anonymous.String(); got != "User:ANONYMOUS" {
		t.Errorf("got %s", got)
	}
}

// onlyTopic allows one operation on one topic.
type onlyTopic struct {
	op   Operation
	name string
}

func (o onlyTopic) Allowed(_ *Context, op Operation, r Resource) bool {
	return op == o.op && r == Topic(o.name)
}

func TestFilter(t *testing.T) {
	names := []string{"a", "b", "c"}
	for _, c := range []struct {
		a    Authorizer
		op   Operation
		of   func(string) Resource
		want []string
	}{
		{AllowAll{}, Write, Topic, names},
		{onlyTopic{Read, "b"}, Read, Topic, []string{"b"}},
		{onlyTopic{Read, "b"}, Write, Topic, nil},
		{onlyTopic{Read, "b"}, Read, Group, nil},
	} {
		if got := Filter(c.a, &Context{Principal: Anonymous}, c.op, c.of, names); !slices.Equal(got, c.want) {
			t.Errorf("%v %v: got %v, want %v", c.a, c.op, got, c.want)
		}
	}
}

// The numbers are on the wire.
func TestNumbers(t *testing.T) {
	if Cluster != (Resource{4, "kafka-cluster"}) || TransactionalID("x") != (Resource{5, "x"}) || IdempotentWrite != 12 {
		t.Error("the numbers differ from Kafka's")
	}
}
