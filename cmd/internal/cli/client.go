package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Defaults of Kafka's admin client.
const (
	defaultAPITimeoutMs = 60000 // milliseconds
	defaultClientID     = "adminclient-1"
	minBackoff          = 50 * time.Millisecond
	maxBackoff          = time.Second
)

// Kind is the sort of Kafka client that a tool would have made; log lines name it.
type Kind struct{ name, failed string }

// The three kinds of client.
var (
	AdminClient = Kind{"AdminClient", "Failed to create new KafkaAdminClient"}
	Producer    = Kind{"Producer", "Failed to construct kafka producer"}
	Consumer    = Kind{"Consumer", "Failed to construct kafka consumer"}
)

// NewClient makes a client from Kafka client settings (bootstrap.servers or, of an
// AdminClient, bootstrap.controllers, client.id,
// security.*, sasl.*, ssl.*). Nothing is connected yet. It fails with a Failure when a
// setting makes no sense. The caller closes the client.
func NewClient(env *Env, kind Kind, settings Properties, more ...kgo.Opt) (*kgo.Client, error) {
	client, err := newClient(env, kind, settings, more)
	if err != nil {
		return nil, &Failure{Class: classKafka, Message: kind.failed, Cause: AsFailure(err)}
	}
	return client, nil
}

func newClient(env *Env, kind Kind, settings Properties, more []kgo.Opt) (*kgo.Client, error) {
	list := settings["bootstrap.servers"]
	if kind == AdminClient {
		controllers := settings["bootstrap.controllers"]
		switch {
		case list == "" && controllers == "":
			return nil, Fail(classConfig, "You must set either bootstrap.servers or bootstrap.controllers")
		case list != "" && controllers != "":
			return nil, Fail(classConfig, "You cannot set both bootstrap.servers and bootstrap.controllers")
		}
		list += controllers
	}
	seeds, err := parseBootstrap(env, list)
	if err != nil {
		return nil, err
	}
	security, err := securityOptions(settings)
	if err != nil {
		return nil, err
	}
	id := settings.Get("client.id", defaultClientID)
	options := []kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.ClientID(id),
		kgo.SoftwareNameAndVersion("tidemark", Version),
		kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(25 * time.Millisecond),
		kgo.RetryBackoffFn(Backoff),
		kgo.WithHooks(&connectLog{env, kind, logPrefix(kind, settings)}),
	}
	return kgo.NewClient(append(append(options, security...), more...)...)
}

// logPrefix names a client in log lines.
func logPrefix(kind Kind, settings Properties) string {
	id := settings.Get("client.id", defaultClientID)
	return fmt.Sprintf("[%s clientId=%s%s]", kind.name, id, groupOf(kind, settings))
}

func groupOf(kind Kind, settings Properties) string {
	if kind != Consumer || settings["group.id"] == "" {
		return ""
	}
	return ", groupId=" + settings["group.id"]
}

// Backoff is how long to wait after the n-th failed try, n ≥ 1.
func Backoff(tries int) time.Duration {
	return min(maxBackoff, minBackoff<<min(tries-1, 10))
}

// parseBootstrap reads "host:port,host:port". Names that cannot be resolved are
// dropped with a warning.
func parseBootstrap(env *Env, list string) ([]string, error) {
	var seeds []string
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		host, port, ok := HostPort(item)
		if !ok {
			return nil, Fail(classConfig, "Invalid url in bootstrap.servers: %s", item)
		}
		if _, err := net.LookupHost(host); err != nil {
			env.Log("WARN", "org.apache.kafka.clients.ClientUtils", fmt.Sprintf("Couldn't resolve server %s "+
				"from bootstrap.servers as DNS resolution failed for %s", item, host))
			continue
		}
		seeds = append(seeds, net.JoinHostPort(host, strconv.Itoa(port)))
	}
	if len(seeds) == 0 {
		return nil, Fail(classConfig, "No resolvable bootstrap urls given in bootstrap.servers")
	}
	return seeds, nil
}

// HostPort takes "host:port", "[v6]:port" or either with a protocol before it apart.
func HostPort(item string) (host string, port int, ok bool) {
	if _, rest, found := strings.Cut(item, "://"); found {
		item = rest
	}
	i := strings.LastIndexByte(item, ':')
	if i < 1 {
		return "", 0, false
	}
	port, err := strconv.Atoi(item[i+1:])
	host = strings.TrimSuffix(strings.TrimPrefix(item[:i], "["), "]")
	return host, port, err == nil && host != ""
}

// CheckBootstrap is the check that some tools make before anything else; it fails with
// a UsageError.
func CheckBootstrap(list string) error {
	if strings.TrimSpace(list) == "" {
		return Usagef("Error while validating the bootstrap address\n")
	}
	for item := range strings.SplitSeq(strings.TrimRight(list, ","), ",") {
		if _, _, ok := HostPort(item); !ok {
			return Usagef("Please provide valid host:port like host1:9091,host2:9092\n")
		}
	}
	return nil
}

// connectLog warns of each broker that cannot be reached.
type connectLog struct {
	env    *Env
	kind   Kind
	prefix string
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (c *connectLog) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	node := meta.NodeID
	if node < 0 {
		node = -1
	}
	host := meta.Host
	if net.ParseIP(host) != nil {
		host = ""
	}
	const source = "org.apache.kafka.clients.NetworkClient"
	c.env.Log("WARN", source, fmt.Sprintf("%s Connection to node %d (%s/%s:%d) could not be established. Node may not be "+
		"available.", c.prefix, node, host, addressOf(meta.Host), meta.Port))
	if node == -1 && c.kind != AdminClient {
		c.env.Log("WARN", source, fmt.Sprintf("%s Bootstrap broker %s:%d (id: -1 rack: null isFenced: false) disconnected",
			c.prefix, meta.Host, meta.Port))
	}
}

func addressOf(host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	if found, err := net.LookupHost(host); err == nil && len(found) > 0 {
		return found[0]
	}
	return host
}

// Admin asks brokers administrative questions, one at a time, and tries again for as
// long as Kafka's admin client would. With bootstrap.controllers it asks controllers.
type Admin struct {
	client      *kgo.Client
	timeout     time.Duration
	controllers *controllers // nil: brokers are asked
}

// NewAdmin makes an Admin from client settings; see NewClient.
func NewAdmin(env *Env, settings Properties) (*Admin, error) {
	client, err := NewClient(env, AdminClient, settings, kgo.RequestRetries(0))
	if err != nil {
		return nil, err
	}
	ms, err := strconv.Atoi(settings.Get("default.api.timeout.ms", strconv.Itoa(defaultAPITimeoutMs)))
	if err != nil {
		ms = defaultAPITimeoutMs
	}
	a := &Admin{client: client, timeout: time.Duration(ms) * time.Millisecond}
	if settings["bootstrap.controllers"] != "" {
		a.controllers = &controllers{env: env, prefix: logPrefix(AdminClient, settings)}
	}
	return a, nil
}

// Close ends the connections.
func (a *Admin) Close() { a.client.Close() }

// Timeout is for how long a question is asked again.
func (a *Admin) Timeout() time.Duration { return a.timeout }

// Ask sends a request to whichever broker takes it and returns the answer. Network
// troubles are tried again until the API timeout; then it fails with a Failure that
// names the call.
func Ask[R kmsg.Response](ctx context.Context, a *Admin, call string, request kmsg.Request) (R, error) {
	return askWith[R](ctx, a, call, func(ctx context.Context) (kmsg.Response, error) {
		if a.controllers != nil {
			return a.controllers.ask(ctx, a.client, call, request)
		}
		return a.client.Request(ctx, request)
	})
}

// AskBroker is Ask, of one broker.
func AskBroker[R kmsg.Response](ctx context.Context, a *Admin, node int32, call string, r kmsg.Request) (R, error) {
	return askWith[R](ctx, a, call, func(ctx context.Context) (kmsg.Response, error) {
		return a.client.Broker(int(node)).Request(ctx, r)
	})
}

func askWith[R kmsg.Response](ctx context.Context, a *Admin, call string,
	send func(context.Context) (kmsg.Response, error),
) (R, error) {
	var none R
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	for tries := 1; ; tries++ {
		response, err := send(ctx)
		if err == nil {
			typed, ok := response.(R)
			if !ok {
				return none, fmt.Errorf("%s: answer of type %T", call, response)
			}
			return typed, nil
		}
		var refused *Failure
		if errors.As(err, &refused) {
			return none, refused
		}
		if unsupported(err) {
			return none, Fail(classErrors+"UnsupportedVersionException", "The node does not support %s", call)
		}
		select {
		case <-ctx.Done():
			return none, Fail(classTimeout, "Timed out waiting for a node assignment. Call: %s", call)
		case <-time.After(Backoff(tries)):
		}
	}
}

// unsupported reports whether the broker does not know the request at all, or not in
// any version that the client knows.
func unsupported(err error) bool {
	text := err.Error()
	return strings.Contains(text, "unsupported") || strings.Contains(text, "too old") ||
		strings.Contains(text, "request key is unknown")
}
