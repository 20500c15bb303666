package controller

import (
	"math"
	"slices"
	"strings"

	"tidemark/internal/metadata"
)

// QuotaOp sets or removes one quota.
type QuotaOp struct {
	Key    string
	Value  float64
	Remove bool
}

// QuotaAlteration is the changes for one entity.
type QuotaAlteration struct {
	Entity []metadata.QuotaEntity
	Ops    []QuotaOp
	// NoSuchHost says that the entity's IP is neither an address nor the name of a host.
	NoSuchHost bool
}

// AlterClientQuotas changes quotas (KIP-546). Its result is an [AlterClientQuotasResult].
type AlterClientQuotas struct {
	Alterations  []QuotaAlteration
	ValidateOnly bool
}

// AlterClientQuotasResult has each entity once, in the order in which they come first.
type AlterClientQuotasResult struct {
	Entities []AlteredQuota
}

// AlteredQuota is the outcome for one entity.
type AlteredQuota struct {
	Entity []metadata.QuotaEntity
	Err    *Error
}

func (c AlterClientQuotas) decide(d *decider) (any, error) {
	var res AlterClientQuotasResult
	at := map[string]int{}
	for _, a := range c.Alterations {
		key := metadata.QuotaKey(a.Entity)
		i, again := at[key]
		if !again {
			i = len(res.Entities)
			at[key] = i
			res.Entities = append(res.Entities, AlteredQuota{Entity: onceEach(a.Entity)})
		}
		out := &res.Entities[i]
		duplicate := duplicateKey(a.Ops)
		if again || duplicate {
			out.Err = refuse(ErrInvalidRequest, "Ignoring duplicate entity %s", quotaEntityText(a.Entity))
			continue
		}
		out.Err = d.alterQuota(out.Entity, a)
	}
	if c.ValidateOnly {
		d.records = nil
	}
	return res, nil
}

// onceEach is an entity as a map would hold it: of each type the last.
func onceEach(entity []metadata.QuotaEntity) []metadata.QuotaEntity {
	var out []metadata.QuotaEntity
	for _, e := range entity {
		i := slices.IndexFunc(out, func(o metadata.QuotaEntity) bool { return o.Type == e.Type })
		if i < 0 {
			out = append(out, e)
		} else {
			out[i] = e
		}
	}
	return out
}

func duplicateKey(ops []QuotaOp) bool {
	seen := map[string]bool{}
	for _, op := range ops {
		if seen[op.Key] {
			return true
		}
		seen[op.Key] = true
	}
	return false
}

// quotaEntityText is how Kafka prints an entity.
func quotaEntityText(entity []metadata.QuotaEntity) string {
	parts := make([]string, 0, len(entity))
	for _, e := range entity {
		name := "null"
		if e.Name != nil {
			name = *e.Name
		}
		parts = append(parts, e.Type+"="+name)
	}
	return "ClientQuotaEntity(entries={" + strings.Join(parts, ", ") + "})"
}

func (d *decider) alterQuota(entity []metadata.QuotaEntity, a QuotaAlteration) *Error {
	keys, err := quotaKeys(entity, a.NoSuchHost)
	if err != nil {
		return err
	}
	current := d.Image.ClientQuota(entity)
	var records []metadata.Record
	for _, op := range a.Ops {
		had, ok := current.Get(op.Key)
		switch {
		case op.Remove && !ok:
			continue
		case op.Remove:
			op.Value = 0
		default:
			if err := checkQuota(keys, op); err != nil {
				return err
			}
			if ok && had == op.Value {
				continue
			}
		}
		records = append(records, metadata.Record{Body: &metadata.ClientQuotaRecord{
			Entity: entity, Key: op.Key, Value: op.Value, Remove: op.Remove}})
	}
	d.records = append(d.records, records...)
	return nil
}

// The types of quota entities.
const (
	quotaUser   = "user"
	quotaClient = "client-id"
	quotaIP     = "ip"
)

// Quota keys with the largest value they can have; those of math.MaxFloat64 may be fractions.
var (
	clientQuotas = map[string]float64{
		"producer_byte_rate": math.MaxInt64, "consumer_byte_rate": math.MaxInt64,
		"request_percentage": math.MaxFloat64, "controller_mutation_rate": math.MaxFloat64,
	}
	ipQuotas = map[string]float64{"connection_creation_rate": math.MaxInt32}
)

// quotaKeys are the quotas that an entity can have.
func quotaKeys(entity []metadata.QuotaEntity, noSuchHost bool) (map[string]float64, *Error) {
	var client, ip bool
	for _, e := range entity {
		switch e.Type {
		case quotaUser, quotaClient:
			client = true
		case quotaIP:
			ip = true
		default:
			return nil, refuse(ErrInvalidRequest, "Unhandled client quota entity type: %s", e.Type)
		}
		if e.Name != nil && *e.Name == "" {
			return nil, refuse(ErrInvalidRequest, "Empty %s not supported", e.Type)
		}
	}
	switch {
	case client && ip:
		//nolint:misspell // Kafka's text
		return nil, refuse(ErrInvalidRequest,
			"Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
	case client:
		return clientQuotas, nil
	case ip:
		if name := entity[0].Name; name != nil && noSuchHost {
			return nil, refuse(ErrInvalidRequest, "%s is not a valid IP or resolvable host.", *name)
		}
		return ipQuotas, nil
	}
	return nil, refuse(ErrInvalidRequest, "Invalid empty client quota entity")
}

func checkQuota(keys map[string]float64, op QuotaOp) *Error {
	largest, ok := keys[op.Key]
	switch {
	case !ok:
		return refuse(ErrInvalidRequest, "Invalid configuration key %s", op.Key)
	case op.Value <= 0:
		return refuse(ErrInvalidRequest, "Quota %s must be greater than 0", op.Key)
	case largest == math.MaxFloat64:
		return nil
	case largest == math.MaxInt32 && op.Value > largest:
		return refuse(ErrInvalidRequest, "Proposed value for %s is too large for an INT.", op.Key)
	case op.Value > largest:
		return refuse(ErrInvalidRequest, "Proposed value for %s is too large for a LONG.", op.Key)
	case math.Mod(op.Value, 1) > 1e-6:
		return refuse(ErrInvalidRequest, "%s cannot be a fractional value.", op.Key)
	}
	return nil
}
