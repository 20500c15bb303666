package config

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
)

// codes are the wire codes of the kinds of errors.
var codes = map[error]int16{ErrInvalidConfig: 40, ErrInvalidRequest: 42, ErrInvalidTopic: 17}

// judge answers a request of the scenario's node as broker and controller do together.
func judge(s scenario, n *Node, c refusal) (int16, string) {
	current := map[string]string{}
	if c.Resource == (Resource{BrokerResource, ""}) {
		current = s.Default
	}
	err := judgeChanges(n, c, current)
	var refused *Error
	if !errors.As(err, &refused) {
		return 0, ""
	}
	return codes[refused.Kind], refused.Message
}

func judgeChanges(n *Node, c refusal, current map[string]string) error {
	seen := make(map[string]bool)
	for _, change := range c.Changes {
		if seen[change.Name] {
			return invalidRequest("Error due to duplicate config keys")
		}
		seen[change.Name] = true
	}
	if c.Resource.Type == BrokerResource {
		if err := n.CheckBrokerName(c.Resource.Name); err != nil {
			return err
		}
		if err := n.CheckBrokerChanges(c.Resource.Name != "", current, c.Changes); err != nil {
			return err
		}
	}
	next := maps.Clone(current)
	for _, change := range c.Changes {
		text, present, err := Apply(c.Resource.Type, current, change)
		if err != nil {
			return err
		}
		delete(next, change.Name)
		if present {
			next[change.Name] = text
		}
	}
	return Validator{func() *Node { return n }}.Validate(c.Resource, next, current)
}

func TestRefusalsEqualKafka(t *testing.T) {
	s, n := loadScenario(t, "default")
	lines := fileLines(t, "testdata", "refusals.tsv")
	if len(lines) < 2000 {
		t.Fatalf("only %d cases", len(lines))
	}
	for _, l := range lines {
		fields := strings.Split(l, "\t")
		if len(fields) != 3 {
			t.Fatalf("bad line %q", l)
		}
		wantCode, err := strconv.ParseInt(fields[0], 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		want, err := strconv.Unquote(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		if code, message := judge(s, n, parseCase(fields[2])); code != int16(wantCode) || message != want {
			t.Errorf("%s:\n\there  %d %s\n\tKafka %d %s", fields[2], code, message, wantCode, want)
		}
	}
}
