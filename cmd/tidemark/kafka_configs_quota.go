package main

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// quotaTypes are the names that quotas use for the kinds of entity, and how they are shown.
var quotaTypes = map[string]struct{ wire, shown string }{
	userEntity:   {"user", "user-principal"},
	clientEntity: {"client-id", "client-id"},
	ipEntity:     {"ip", "ip"},
}

func isUserOrClientQuota(name string) bool {
	return slices.Contains([]string{
		"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
	}, name)
}

func isScram(name string) bool { return scramMechanisms[name] != 0 }

// scramMechanisms are the numbers of the SCRAM mechanisms on the wire.
var scramMechanisms = map[string]int8{"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}

const (
	scramIterations  = 4096 // when none are given, and the fewest allowed
	resourceNotFound = 91   // error code
)

func (c *configsCommand) alterUserOrClient(ctx context.Context, add []setting, remove []string) error {
	var names []string
	for _, s := range add {
		names = append(names, s.name)
	}
	if err := c.checkUserOrClient(names, remove); err != nil {
		return err
	}
	if slices.ContainsFunc(names, isUserOrClientQuota) || slices.ContainsFunc(remove, isUserOrClientQuota) {
		return c.alterQuotas(ctx, add, remove)
	}
	return c.alterScram(ctx, c.entityNames[0], add, remove)
}

// checkUserOrClient refuses names that do not go with users or clients, or with each other.
func (c *configsCommand) checkUserOrClient(add, remove []string) error {
	isClient := c.kinds[0] == clientEntity || len(c.kinds) == 2
	kind, what := userEntity, "quota and SCRAM credential configs"
	if isClient {
		kind, what = clientEntity, "quota configs"
	}
	unknown := func(names []string) (rest []string) {
		for _, name := range names {
			if !isUserOrClientQuota(name) && (isClient || !isScram(name)) {
				rest = append(rest, name)
			}
		}
		return rest
	}
	if rest := unknown(add); rest != nil {
		return cli.BadArgument("Only %s can be added for '%s' using --bootstrap-server. Unexpected config names: Set(%s)",
			what, kind, strings.Join(rest, ", "))
	}
	if rest := unknown(remove); rest != nil {
		return cli.BadArgument("Only %s can be deleted for '%s' using --bootstrap-server. Unexpected config names: "+
			"ArrayBuffer(%s)", what, kind, strings.Join(rest, ", "))
	}
	if !slices.ContainsFunc(add, isScram) && !slices.ContainsFunc(remove, isScram) {
		return nil
	}
	if slices.Contains(c.entityNames, "") {
		return cli.BadArgument("The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials " +
			"using --bootstrap-server.")
	}
	if slices.ContainsFunc(add, isUserOrClientQuota) || slices.ContainsFunc(remove, isUserOrClientQuota) {
		return cli.BadArgument("Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using " +
			"--bootstrap-server.")
	}
	return nil
}

func (c *configsCommand) alterIP(ctx context.Context, add []setting, remove []string) error {
	var unknown []string
	for _, s := range add {
		if s.name != "connection_creation_rate" {
			unknown = append(unknown, s.name)
		}
	}
	for _, name := range remove {
		if name != "connection_creation_rate" {
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		return cli.BadArgument("Only connection quota configs can be added for 'ips' using --bootstrap-server. Unexpected "+
			"config names: %s", strings.Join(unknown, ","))
	}
	return c.alterQuotas(ctx, add, remove)
}

func (c *configsCommand) alterQuotas(ctx context.Context, add []setting, remove []string) error {
	old, err := c.quotas(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for _, name := range remove {
		if len(old) == 0 || !slices.ContainsFunc(old[0].Values, func(v quotaValue) bool { return v.Key == name }) {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return cli.Fail(classInvalidConfig, "Invalid config(s): %s", strings.Join(missing, ","))
	}
	request, err := c.quotaRequest(add, remove)
	if err != nil {
		return err
	}
	response, err := cli.Ask[*kmsg.AlterClientQuotasResponse](ctx, c.admin, "alterClientQuotas", request)
	if err != nil {
		return cli.Execution(err)
	}
	for _, e := range response.Entries {
		if f := cli.APIFailure(e.ErrorCode, e.ErrorMessage); f != nil {
			return cli.Execution(f)
		}
	}
	return nil
}

func (c *configsCommand) quotaRequest(add []setting, remove []string) (*kmsg.AlterClientQuotasRequest, error) {
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	for i, kind := range c.kinds {
		part := kmsg.NewAlterClientQuotasRequestEntryEntity()
		part.Type = quotaTypes[kind].wire
		if name := c.entityNames[i]; name != "" {
			part.Name = &name
		}
		entry.Entity = append(entry.Entity, part)
	}
	for _, s := range add {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		value, err := strconv.ParseFloat(s.value, 64)
		if err != nil {
			return nil, cli.BadArgument("Cannot parse quota configuration value for %s: %s", s.name, s.value)
		}
		op.Key, op.Value = s.name, value
		entry.Ops = append(entry.Ops, op)
	}
	for _, name := range remove {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		op.Key, op.Remove = name, true
		entry.Ops = append(entry.Ops, op)
	}
	request := kmsg.NewPtrAlterClientQuotasRequest()
	request.Entries = []kmsg.AlterClientQuotasRequestEntry{entry}
	return request, nil
}

type (
	quotaEntry = kmsg.DescribeClientQuotasResponseEntry
	quotaValue = kmsg.DescribeClientQuotasResponseEntryValue
)

// quotas asks for the quotas of exactly the kinds given; a kind without a name stands
// for all of its kind.
func (c *configsCommand) quotas(ctx context.Context) ([]quotaEntry, error) {
	if len(c.entityNames) > len(c.kinds) {
		return nil, cli.BadArgument("More entity names specified than entity types")
	}
	request := kmsg.NewPtrDescribeClientQuotasRequest()
	request.Strict = true
	for i, kind := range c.kinds {
		part := kmsg.NewDescribeClientQuotasRequestComponent()
		part.EntityType, part.MatchType = quotaTypes[kind].wire, kmsg.QuotasMatchTypeAny
		if i < len(c.entityNames) {
			part.MatchType = kmsg.QuotasMatchTypeDefault
			if name := c.entityNames[i]; name != "" {
				part.MatchType, part.Match = kmsg.QuotasMatchTypeExact, &name
			}
		}
		request.Components = append(request.Components, part)
	}
	response, err := cli.Ask[*kmsg.DescribeClientQuotasResponse](ctx, c.admin, "describeClientQuotas", request)
	if err != nil {
		return nil, cli.Execution(err)
	}
	if f := cli.APIFailure(response.ErrorCode, response.ErrorMessage); f != nil {
		return nil, cli.Execution(f)
	}
	cli.HashOrderBy(response.Entries, len(response.Entries), quotaHash)
	return response.Entries, nil
}

// quotaHash is the hashCode of Java's ClientQuotaEntity.
func quotaHash(e quotaEntry) uint32 {
	var sum uint32
	for _, part := range e.Entity {
		h := cli.JavaHash(part.Type)
		if part.Name != nil {
			h ^= cli.JavaHash(*part.Name)
		}
		sum += h
	}
	return 31 + sum
}

func (c *configsCommand) describeQuotas(ctx context.Context) error {
	entries, err := c.quotas(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		var parts, values []string
		for _, kind := range []string{userEntity, clientEntity, ipEntity} {
			for _, part := range e.Entity {
				if part.Type != quotaTypes[kind].wire {
					continue
				}
				if part.Name == nil {
					parts = append(parts, "the default "+quotaTypes[kind].shown)
				} else {
					parts = append(parts, quotaTypes[kind].shown+" '"+*part.Name+"'")
				}
			}
		}
		cli.HashOrder(e.Values, len(e.Values), func(v quotaValue) string { return v.Key })
		for _, v := range e.Values {
			values = append(values, v.Key+"="+cli.JavaDouble(v.Value))
		}
		fmt.Fprintf(c.env.Stdout, "Quota configs for %s are %s\n", strings.Join(parts, ", "), strings.Join(values, ", "))
	}
	return nil
}

func (c *configsCommand) describeScram(ctx context.Context) error {
	request := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	for _, name := range c.entityNames {
		user := kmsg.NewDescribeUserSCRAMCredentialsRequestUser()
		user.Name = name
		request.Users = append(request.Users, user)
	}
	response, err := cli.Ask[*kmsg.DescribeUserSCRAMCredentialsResponse](ctx, c.admin,
		"describeUserScramCredentials", request)
	if err == nil && response.ErrorCode != 0 {
		err = cli.APIFailure(response.ErrorCode, response.ErrorMessage)
	}
	if err != nil {
		return cli.Execution(err)
	}
	for _, r := range response.Results {
		if r.ErrorCode == resourceNotFound {
			continue
		}
		if f := cli.APIFailure(r.ErrorCode, r.ErrorMessage); f != nil {
			fmt.Fprintf(c.env.Stdout, "Error retrieving SCRAM credential configs for user-principal '%s': %s: %s\n",
				r.User, "ExecutionException", f.String())
			continue
		}
		var infos []string
		for _, info := range r.CredentialInfos {
			infos = append(infos, fmt.Sprintf("%s=iterations=%d", scramName(info.Mechanism), info.Iterations))
		}
		fmt.Fprintf(c.env.Stdout, "SCRAM credential configs for user-principal '%s' are %s\n",
			r.User, strings.Join(infos, ", "))
	}
	return nil
}

func scramName(mechanism int8) string {
	for name, number := range scramMechanisms {
		if number == mechanism {
			return name
		}
	}
	return "UNKNOWN"
}

func (c *configsCommand) alterScram(ctx context.Context, user string, add []setting, remove []string) error {
	request := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	for _, name := range remove {
		one := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
		one.Name, one.Mechanism = user, scramMechanisms[name]
		request.Deletions = append(request.Deletions, one)
	}
	for _, s := range add {
		one, err := scramUpsertion(user, s)
		if err != nil {
			return err
		}
		request.Upsertions = append(request.Upsertions, one)
	}
	response, err := cli.Ask[*kmsg.AlterUserSCRAMCredentialsResponse](ctx, c.admin, "alterUserScramCredentials", request)
	if err != nil {
		return cli.Execution(err)
	}
	for _, r := range response.Results {
		if f := cli.APIFailure(r.ErrorCode, r.ErrorMessage); f != nil {
			return cli.Execution(f)
		}
	}
	return nil
}

var scramValue = cli.Pattern(`^(iterations=(-?[0-9]*),)?password=(.*)$`)

// scramUpsertion turns "iterations=N,password=X" into a salted credential.
func scramUpsertion(user string, s setting) (kmsg.AlterUserSCRAMCredentialsRequestUpsertion, error) {
	one := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
	parts := scramValue().FindStringSubmatch(s.value)
	if parts == nil {
		return one, cli.BadArgument("Invalid credential property %s=%s", strings.ReplaceAll(s.name, "-", "_"), s.value)
	}
	iterations, password := int64(scramIterations), parts[3]
	if parts[1] != "" && parts[2] != "-1" {
		var err error
		if iterations, err = strconv.ParseInt(parts[2], 10, 32); err != nil {
			return one, cli.BadArgument("For input string: \"%s\"", parts[2])
		}
	}
	if iterations < scramIterations {
		return one, cli.BadArgument("Iterations %d is less than the minimum %d required for %s",
			iterations, scramIterations, s.name)
	}
	if password == "" {
		return one, cli.Execution(cli.Fail(classUnacceptableCredential, "Password must not be empty"))
	}
	digest, size := func() hash.Hash { return sha256.New() }, sha256.Size
	if s.name == "SCRAM-SHA-512" {
		digest, size = func() hash.Hash { return sha512.New() }, sha512.Size
	}
	salt := make([]byte, 24)
	rand.Read(salt)
	salted, err := pbkdf2.Key(digest, password, salt, int(iterations), size)
	if err != nil {
		return one, fmt.Errorf("salt the password: %w", err)
	}
	one.Name, one.Mechanism, one.Iterations = user, scramMechanisms[s.name], int32(iterations)
	one.Salt, one.SaltedPassword = salt, salted
	return one, nil
}
