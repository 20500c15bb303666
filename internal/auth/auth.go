// Package auth says who sends a request and what he may do.
//
// Every handler asks an [Authorizer] before it acts, with the [Context] of the connection. The package owns no file and
// no message; its values do not change and may be used concurrently.
//
// Source: Kafka 4.3.1 KafkaPrincipal, AclOperation, ResourceType.
package auth

import "net/netip"

// Principal is who sends a request.
type Principal struct {
	Type string // "User"
	Name string
}

// Anonymous is the principal of a connection that did not log in.
var Anonymous = Principal{Type: "User", Name: "ANONYMOUS"}

// String returns TYPE:NAME, the form used in requests between nodes and in logs.
func (p Principal) String() string { return p.Type + ":" + p.Name }

// Operation is what is done to a resource; the numbers are those of ACL requests.
type Operation int8

// The operations.
const (
	Read            Operation = 3
	Write           Operation = 4
	Create          Operation = 5
	Delete          Operation = 6
	Alter           Operation = 7
	Describe        Operation = 8
	ClusterAction   Operation = 9
	DescribeConfigs Operation = 10
	AlterConfigs    Operation = 11
	IdempotentWrite Operation = 12
)

// ResourceType is the kind of a resource; the numbers are those of ACL requests.
type ResourceType int8

// The kinds of resources.
const (
	TopicType           ResourceType = 2
	GroupType           ResourceType = 3
	ClusterType         ResourceType = 4
	TransactionalIDType ResourceType = 5
)

// Resource is what an operation is done to.
type Resource struct {
	Type ResourceType
	Name string
}

// Cluster is the cluster as a whole.
var Cluster = Resource{ClusterType, "kafka-cluster"}

// Topic returns the resource of a topic.
func Topic(name string) Resource { return Resource{TopicType, name} }

// Group returns the resource of a consumer, share or streams group.
func Group(id string) Resource { return Resource{GroupType, id} }

// TransactionalID returns the resource of a transactional id.
func TransactionalID(id string) Resource { return Resource{TransactionalIDType, id} }

// Context is what is known of the sender of a request.
type Context struct {
	Principal       Principal
	APIKey          int16          // of the request
	Listener        string         // name of the listener, upper case
	Client          netip.AddrPort // address of the sender
	ClientID        string         // of the request; "" when null
	SoftwareName    string         // as the client said in ApiVersions; "" when it did not
	SoftwareVersion string
}

// Authorizer decides what is allowed. Implementations must be safe for concurrent use, and must not block.
type Authorizer interface {
	// Allowed reports whether the sender c may do op to r.
	Allowed(c *Context, op Operation, r Resource) bool
}

// AllowAll allows everything.
type AllowAll struct{}

// Allowed returns true.
func (AllowAll) Allowed(*Context, Operation, Resource) bool { return true }
