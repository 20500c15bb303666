package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// controllers are the nodes of a metadata quorum that is asked itself, without brokers (KIP-919).
type controllers struct {
	env    *Env
	prefix string                // of log lines
	nodes  map[int32]*kgo.Broker // nil until they are known
	active int32
}

// endpointOfController is how a DescribeCluster request asks for controllers.
const endpointOfController = 2

// controllerCalls are the calls that Kafka's admin client sends to controllers.
var controllerCalls = []string{
	"describeConfigs", "incrementalAlterConfigs", "listNodes", "describeMetadataQuorum", "describeFeatures",
	"updateFeatures",
}

// ask sends a request to the controller that it is for.
func (c *controllers) ask(ctx context.Context, client *kgo.Client, call string, r kmsg.Request) (kmsg.Response, error) {
	if !slices.Contains(controllerCalls, call) {
		return nil, Fail(classErrors+"UnsupportedEndpointTypeException",
			"This Admin API is not yet supported when communicating directly with the controller quorum.")
	}
	if c.nodes == nil {
		if err := c.learn(ctx, client); err != nil {
			return nil, err
		}
	}
	if cluster, ok := r.(*kmsg.DescribeClusterRequest); ok {
		cluster.EndpointType = endpointOfController
	}
	id := c.active
	if named, ok := namedNode(r); ok {
		id = named
	}
	node, ok := c.nodes[id]
	if !ok {
		c.nodes = nil // it may come
		return nil, errNoNode
	}
	return node.Request(ctx, r)
}

var errNoNode = errors.New("no such controller")

// learn asks the first controller that answers for all of them.
func (c *controllers) learn(ctx context.Context, client *kgo.Client) error {
	request := kmsg.NewPtrDescribeClusterRequest()
	request.EndpointType = endpointOfController
	var answer kmsg.Response
	var err error
	for _, seed := range client.SeedBrokers() {
		if answer, err = seed.Request(ctx, request); err == nil {
			break
		}
	}
	response, ok := answer.(*kmsg.DescribeClusterResponse)
	if err != nil || !ok {
		return err
	}
	if f := APIFailure(response.ErrorCode, response.ErrorMessage); f != nil {
		c.env.Log("WARN", "org.apache.kafka.clients.admin.internals.AdminMetadataManager",
			c.prefix+" Fatal error during metadata update")
		fmt.Fprintln(c.env.Stderr, f.String())
		return f
	}
	var addresses []string
	for _, b := range response.Brokers {
		addresses = append(addresses, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
	}
	if err := client.UpdateSeedBrokers(addresses...); err != nil {
		return err
	}
	c.active, c.nodes = response.ControllerID, map[int32]*kgo.Broker{}
	for i, seed := range client.SeedBrokers() {
		c.nodes[response.Brokers[i].NodeID] = seed
	}
	return nil
}

// namedNode is the node that alone can answer a request, if there is one.
func namedNode(r kmsg.Request) (int32, bool) {
	var kind kmsg.ConfigResourceType
	var name string
	switch r := r.(type) {
	case *kmsg.DescribeConfigsRequest:
		kind, name = r.Resources[0].ResourceType, r.Resources[0].ResourceName
	case *kmsg.IncrementalAlterConfigsRequest:
		if kind = r.Resources[0].ResourceType; kind == kmsg.ConfigResourceTypeBroker {
			return 0, false
		}
		name = r.Resources[0].ResourceName
	}
	if kind != kmsg.ConfigResourceTypeBroker && kind != kmsg.ConfigResourceTypeBrokerLogger {
		return 0, false
	}
	id, err := strconv.ParseInt(name, 10, 32)
	return int32(id), err == nil
}
