package api

import "tidemark/internal/auth"

// The operations that exist on a kind of resource, as the bit fields of authorized operations tell them (KIP-430).
var (
	topicOperations = []auth.Operation{auth.Read, auth.Write, auth.Create, auth.Delete, auth.Alter, auth.Describe,
		auth.DescribeConfigs, auth.AlterConfigs}
	clusterOperations = []auth.Operation{auth.Create, auth.Alter, auth.Describe, auth.ClusterAction,
		auth.DescribeConfigs, auth.AlterConfigs, auth.IdempotentWrite}
)

// operations is the bit field of what the caller may do: bit n for the operation of that number.
func (a *API) operations(c *call, exist []auth.Operation, r auth.Resource) int32 {
	var bits int32
	for _, op := range exist {
		if a.allowed(c, op, r) {
			bits |= 1 << op
		}
	}
	return bits
}
