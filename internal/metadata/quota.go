package metadata

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// ClientQuota is the quotas of one entity; read only.
type ClientQuota struct {
	Entity []QuotaEntity // by type
	values tree[string, float64]
}

// Values yields the quotas, by key.
func (q *ClientQuota) Values() iter.Seq2[string, float64] { return q.values.all() }

// Get returns one quota; of a nil ClientQuota there is none.
func (q *ClientQuota) Get(key string) (float64, bool) {
	if q == nil {
		return 0, false
	}
	return q.values.get(key)
}

// QuotaKey makes one string of an entity, the same for every order of its parts.
func QuotaKey(entity []QuotaEntity) string {
	key, _ := quotaKey(entity)
	return key
}

// quotaKey is QuotaKey, with the parts in its order.
func quotaKey(entity []QuotaEntity) (string, []QuotaEntity) {
	entity = slices.Clone(entity)
	slices.SortFunc(entity, func(a, b QuotaEntity) int { return strings.Compare(a.Type, b.Type) })
	var key strings.Builder
	for _, e := range entity {
		fmt.Fprintf(&key, "%q", e.Type)
		if e.Name == nil {
			key.WriteString("<default>")
		} else {
			fmt.Fprintf(&key, "=%q", *e.Name)
		}
	}
	return key.String(), entity
}

// with returns the quotas after a record; q may be nil. The result is nil when
// no quota is left.
func (q *ClientQuota) with(r *ClientQuotaRecord, entity []QuotaEntity) *ClientQuota {
	next := &ClientQuota{Entity: entity, values: newTree[string, float64](strings.Compare)}
	if q != nil {
		next.values = q.values
	}
	if r.Remove {
		next.values = next.values.delete(r.Key)
	} else {
		next.values = next.values.set(r.Key, r.Value)
	}
	if next.values.len() == 0 {
		return nil
	}
	return next
}
