//go:build oracle

package differential

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// quotaOf is an entity: types and names in turn, "<default>" for the default of a type.
func quotaOf(parts ...string) (entity []kmsg.AlterClientQuotasRequestEntryEntity) {
	for i := 0; i+1 < len(parts); i += 2 {
		one := kmsg.AlterClientQuotasRequestEntryEntity{Type: parts[i]}
		if parts[i+1] != "<default>" {
			one.Name = &parts[i+1]
		}
		entity = append(entity, one)
	}
	return entity
}

type quotaChange struct {
	entity []kmsg.AlterClientQuotasRequestEntryEntity
	ops    []kmsg.AlterClientQuotasRequestEntryOp
}

func setQuota(key string, value float64) kmsg.AlterClientQuotasRequestEntryOp {
	return kmsg.AlterClientQuotasRequestEntryOp{Key: key, Value: value}
}

func removeQuota(key string) kmsg.AlterClientQuotasRequestEntryOp {
	return kmsg.AlterClientQuotasRequestEntryOp{Key: key, Remove: true}
}

func quota(entity []kmsg.AlterClientQuotasRequestEntryEntity, ops ...kmsg.AlterClientQuotasRequestEntryOp) quotaChange {
	return quotaChange{entity, ops}
}

func alterQuotas(version int16, validateOnly bool, changes []quotaChange) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrAlterClientQuotasRequest()
		req.SetVersion(version)
		req.ValidateOnly = validateOnly
		for _, c := range changes {
			req.Entries = append(req.Entries, kmsg.AlterClientQuotasRequestEntry{Entity: c.entity, Ops: c.ops})
		}
		return req
	}
}

// quotaSteps are changes, done one after the other.
func quotaSteps() [][]quotaChange {
	user, client := quotaOf("user", "u"), quotaOf("client-id", "c")
	const produceRate, percentage, creation = "producer_byte_rate", "request_percentage", "connection_creation_rate"
	return [][]quotaChange{
		nil,
		{quota(user, setQuota(produceRate, 1024), setQuota(percentage, 12.5))},
		{quota(user, setQuota(produceRate, 1024))},
		{quota(user, removeQuota("consumer_byte_rate"), setQuota("controller_mutation_rate", 0.5))},
		{quota(client, setQuota(produceRate, 1)), quota(quotaOf("user", "u", "client-id", "c"), setQuota(produceRate, 2))},
		{quota(quotaOf("client-id", "c2", "user", "u2"), setQuota(produceRate, 2))},
		{quota(quotaOf("user", "<default>"), setQuota(percentage, 200))},
		{quota(quotaOf("user", "<default>", "client-id", "<default>"), setQuota(percentage, 1e9))},
		{quota(quotaOf("ip", "127.0.0.1"), setQuota(creation, 10)), quota(quotaOf("ip", "<default>"), setQuota(creation, 7))},
		{quota(quotaOf("ip", "localhost"), setQuota(creation, 3)), quota(quotaOf("ip", "::1"), setQuota(creation, 4))},
		{quota(quotaOf("ip", "not an address"), setQuota(creation, 3))},
		{quota(quotaOf("ip", "127.0.0.1", "user", "u"), setQuota(creation, 3))},
		{quota(quotaOf("ip", "127.0.0.1"), setQuota(produceRate, 3))},
		{quota(quotaOf("ip", "127.0.0.1"), setQuota(creation, 1e12))},
		{quota(quotaOf("ip", "127.0.0.1"), setQuota(creation, 1.5))},
		{quota(nil, setQuota(produceRate, 3))},
		{quota(quotaOf("group", "g"), setQuota(produceRate, 3))},
		{quota(quotaOf("", "g"), setQuota(produceRate, 3))},
		{quota(quotaOf("user", ""), setQuota(produceRate, 3))},
		{quota(quotaOf("user", "a", "user", "b"), setQuota(produceRate, 3))},
		{quota(user, setQuota("nope", 3))},
		{quota(user, removeQuota("nope"))},
		{quota(user, setQuota(produceRate, 0))},
		{quota(user, setQuota(produceRate, -1))},
		{quota(user, setQuota(produceRate, 1.5))},
		{quota(user, setQuota(produceRate, 1e300))},
		{quota(user, setQuota(produceRate, 5), setQuota(produceRate, 6))},
		{quota(user, setQuota(produceRate, 5)), quota(user, setQuota(percentage, 6))},
		{quota(user, setQuota(produceRate, 7)), quota(client, setQuota(produceRate, -7))},
		{quota(user)},
		{quota(quotaOf("user", "u/ü %20"), setQuota(produceRate, 7))},
		{quota(client, removeQuota(produceRate))},
		{quota(user, removeQuota(produceRate), removeQuota(percentage), removeQuota("controller_mutation_rate"))},
		// What would slow down the tests that follow, at Kafka.
		{quota(quotaOf("user", "<default>"), removeQuota(percentage)),
			quota(quotaOf("user", "<default>", "client-id", "<default>"), removeQuota(percentage)),
			quota(quotaOf("ip", "127.0.0.1"), removeQuota(creation)), quota(quotaOf("ip", "<default>"), removeQuota(creation)),
			quota(quotaOf("ip", "localhost"), removeQuota(creation)), quota(quotaOf("ip", "::1"), removeQuota(creation))},
	}
}

func describeQuotas(version int16, strict bool, parts ...kmsg.DescribeClientQuotasRequestComponent) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDescribeClientQuotasRequest()
		req.SetVersion(version)
		req.Strict, req.Components = strict, parts
		return req
	}
}

func match(kind string, how int8, name ...string) kmsg.DescribeClientQuotasRequestComponent {
	c := kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: kmsg.QuotasMatchType(how)}
	if len(name) > 0 {
		c.Match = &name[0]
	}
	return c
}

// quotaOrder orders what Kafka has from hash tables.
var quotaOrder = []change{sorted("Entity", "Values"), sorted("Entries")}

// entityText orders the parts of an entity in a text, too.
func entityText(_ *side, tree any) any {
	m, _ := tree.(map[string]any)
	entries, _ := m["Entries"].([]any)
	for _, e := range entries {
		entry := e.(map[string]any)
		if text, ok := entry["ErrorMessage"].(string); ok && strings.Contains(text, "ClientQuotaEntity(entries={") {
			entry["ErrorMessage"] = text[:strings.Index(text, "{")]
		}
	}
	return tree
}

func (w *world) testClientQuotas(t *testing.T) {
	for i, changes := range quotaSteps() {
		name := fmt.Sprintf("change %d", i)
		order := append([]change{entityText}, quotaOrder...)
		w.same(t, name+" looked at", alterQuotas(0, true, changes), order...)
		w.same(t, name, alterQuotas(int16(i%2), false, changes), order...)
		w.sameSoon(t, name+": all", describeQuotas(1, false), quotaOrder...)
	}
	w.same(t, "u's", describeQuotas(1, true, match("user", 0, "u")), quotaOrder...)
	for v := int16(0); v <= 1; v++ {
		for _, strict := range []bool{true, false} {
			for name, parts := range map[string][]kmsg.DescribeClientQuotasRequestComponent{
				"user u": {match("user", 0, "u")}, "default user": {match("user", 1)}, "any user": {match("user", 2)},
				"user and client":     {match("user", 0, "u"), match("client-id", 2)},
				"any client":          {match("client-id", 2)},
				"any ip":              {match("ip", 2)},
				"ip and user":         {match("ip", 2), match("user", 2)},
				"exact, null":         {match("user", 0)},
				"default with a name": {match("user", 1, "u")},
				"any with a name":     {match("user", 2, "u")},
				"match type 9":        {match("user", 9)},
				"unknown type":        {match("nope", 2)},
				"empty type":          {match("", 2)},
				"twice":               {match("user", 2), match("user", 1)},
			} {
				w.same(t, name, describeQuotas(v, strict, parts...), quotaOrder...)
			}
		}
	}
}

// testAddressRate makes more connections than the quota of their address lets in, ten at once and then one a second;
// others are closed.
func (w *world) testAddressRate(t *testing.T) {
	closed := func(answered bool, _ time.Duration) bool { return !answered }
	for _, name := range []string{"<default>", "127.0.0.1"} {
		const creation = "connection_creation_rate"
		w.same(t, "set", alterQuotas(1, false, []quotaChange{quota(quotaOf("ip", name), setQuota(creation, 1))}))
		w.openMany(t, 12, true, closed)
		w.same(t, "remove", alterQuotas(1, false, []quotaChange{quota(quotaOf("ip", name), removeQuota(creation))}))
		w.openMany(t, 12, false, closed)
	}
}
