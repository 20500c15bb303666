package auth

import "testing"

func TestPrincipalString(t *testing.T) {
	if got := Anonymous.String(); got != "User:ANONYMOUS" {
		t.Errorf("got %s", got)
	}
}

func TestAllowAll(t *testing.T) {
	var a Authorizer = AllowAll{}
	if !a.Allowed(&Context{Principal: Anonymous}, ClusterAction, Cluster) {
		t.Error("refused")
	}
}

// The numbers are on the wire.
func TestNumbers(t *testing.T) {
	if Cluster != (Resource{4, "kafka-cluster"}) || TransactionalID("x") != (Resource{5, "x"}) || IdempotentWrite != 12 {
		t.Error("the numbers differ from Kafka's")
	}
}
