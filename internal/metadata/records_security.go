package metadata

// ClientQuotaRecord sets or removes one quota of an entity.
type ClientQuotaRecord struct {
	Entity []QuotaEntity
	Key    string
	Value  float64
	Remove bool
}

// QuotaEntity is one part of whom a quota is for.
type QuotaEntity struct {
	Type string  // "user", "client-id" or "ip"
	Name *string // nil = the default of that type
}

// Kind implements [Body].
func (*ClientQuotaRecord) Kind() Kind { return KindClientQuota }

func (r *ClientQuotaRecord) fields(c *codec) {
	array(c, &r.Entity, false, 3, func(c *codec, e *QuotaEntity) {
		c.string(&e.Type)
		c.nullableString(&e.Name)
		c.tags()
	})
	c.string(&r.Key)
	c.float64(&r.Value)
	c.bool(&r.Remove)
	c.tags()
}

// UserScramCredentialRecord sets the SCRAM credential of a user.
type UserScramCredentialRecord struct {
	Name       string
	Mechanism  int8 // 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
	Salt       []byte
	StoredKey  []byte
	ServerKey  []byte
	Iterations int32
}

// Kind implements [Body].
func (*UserScramCredentialRecord) Kind() Kind { return KindUserScramCredential }

func (r *UserScramCredentialRecord) fields(c *codec) {
	c.string(&r.Name)
	c.int8(&r.Mechanism)
	c.bytes(&r.Salt)
	c.bytes(&r.StoredKey)
	c.bytes(&r.ServerKey)
	c.int32(&r.Iterations)
	c.tags()
}

// RemoveUserScramCredentialRecord removes the SCRAM credential of a user.
type RemoveUserScramCredentialRecord struct {
	Name      string
	Mechanism int8
}

// Kind implements [Body].
func (*RemoveUserScramCredentialRecord) Kind() Kind { return KindRemoveUserScramCredential }

func (r *RemoveUserScramCredentialRecord) fields(c *codec) {
	c.string(&r.Name)
	c.int8(&r.Mechanism)
	c.tags()
}

// AccessControlEntryRecord adds an ACL.
type AccessControlEntryRecord struct {
	ID             UUID
	ResourceType   int8
	ResourceName   string
	PatternType    int8
	Principal      string
	Host           string
	Operation      int8
	PermissionType int8
}

// Kind implements [Body].
func (*AccessControlEntryRecord) Kind() Kind { return KindAccessControlEntry }

func (r *AccessControlEntryRecord) fields(c *codec) {
	c.uuid(&r.ID)
	c.int8(&r.ResourceType)
	c.string(&r.ResourceName)
	c.int8(&r.PatternType)
	c.string(&r.Principal)
	c.string(&r.Host)
	c.int8(&r.Operation)
	c.int8(&r.PermissionType)
	c.tags()
}

// RemoveAccessControlEntryRecord removes an ACL.
type RemoveAccessControlEntryRecord struct {
	ID UUID
}

// Kind implements [Body].
func (*RemoveAccessControlEntryRecord) Kind() Kind { return KindRemoveAccessControlEntry }

func (r *RemoveAccessControlEntryRecord) fields(c *codec) {
	c.uuid(&r.ID)
	c.tags()
}

// DelegationTokenRecord sets a delegation token; times are milliseconds.
type DelegationTokenRecord struct {
	Owner               string
	Requester           string
	Renewers            []string
	IssueTimestamp      int64
	MaxTimestamp        int64
	ExpirationTimestamp int64
	TokenID             string
}

// Kind implements [Body].
func (*DelegationTokenRecord) Kind() Kind { return KindDelegationToken }

func (r *DelegationTokenRecord) fields(c *codec) {
	c.string(&r.Owner)
	c.string(&r.Requester)
	c.strings(&r.Renewers)
	c.int64(&r.IssueTimestamp)
	c.int64(&r.MaxTimestamp)
	c.int64(&r.ExpirationTimestamp)
	c.string(&r.TokenID)
	c.tags()
}

// RemoveDelegationTokenRecord removes a delegation token.
type RemoveDelegationTokenRecord struct {
	TokenID string
}

// Kind implements [Body].
func (*RemoveDelegationTokenRecord) Kind() Kind { return KindRemoveDelegationToken }

func (r *RemoveDelegationTokenRecord) fields(c *codec) {
	c.string(&r.TokenID)
	c.tags()
}
