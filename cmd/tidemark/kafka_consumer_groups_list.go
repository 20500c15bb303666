package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// listedGroup is a group in a broker's list.
type listedGroup struct {
	id, kind, state string
}

// consumerGroupStates are the states that groups of consumers can have, as --state takes them, in Kafka's order.
var consumerGroupStates = []string{"Stable", "Reconciling", "Assigning", "PreparingRebalance", "Dead", "Empty",
	"CompletingRebalance"}

// consumerGroupKinds are the protocols of groups of consumers, as --type takes them, in Kafka's order.
var consumerGroupKinds = []string{"Consumer", "Classic"}

func (c *consumerGroupsCommand) listGroups(ctx context.Context) error {
	if !c.state.Has() && !c.kind.Has() {
		ids, err := c.allGroupIDs(ctx)
		if err != nil {
			return err
		}
		for _, id := range ids {
			fmt.Fprintln(c.env.Stdout, id)
		}
		return nil
	}
	kinds, err := listFilter(c.kind, consumerGroupKinds, "Invalid types list '%s'. Valid types are: %s")
	if err != nil {
		return err
	}
	states, err := listFilter(c.state, consumerGroupStates, "Invalid state list '%s'. Valid states are: %s")
	if err != nil {
		return err
	}
	groups, err := c.askGroups(ctx, states, kinds)
	if err != nil {
		return cli.Execution(err)
	}
	c.printListed(groups)
	return nil
}

// listFilter reads a list of names; letters may be upper or lower case.
func listFilter(o *cli.Option, known []string, invalid string) ([]string, error) {
	text, err := o.Value()
	if err != nil || text == "" {
		return nil, err
	}
	var names []string
	for one := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, strings.TrimSpace(one)) })
		if i < 0 {
			return nil, cli.BadArgument(invalid, text, strings.Join(known, ", "))
		}
		names = append(names, known[i])
	}
	return names, nil
}

// allGroupIDs lists the ids of all groups of consumers.
func (c *consumerGroupsCommand) allGroupIDs(ctx context.Context) ([]string, error) {
	groups, err := c.askGroups(ctx, nil, consumerGroupKinds)
	if err != nil {
		return nil, runtimeFailure(cli.Execution(err))
	}
	ids := make([]string, len(groups))
	for i, g := range groups {
		ids[i] = g.id
	}
	return ids, nil
}

// askGroups asks every broker for the groups of consumers that it coordinates. Groups without members, that only
// have offsets, are among them.
func (c *consumerGroupsCommand) askGroups(ctx context.Context, states, kinds []string) ([]listedGroup, error) {
	nodes, err := c.admin.Nodes(ctx)
	if err != nil {
		return nil, cli.Fail("org.apache.kafka.common.KafkaException", "Failed to find brokers to send ListGroups")
	}
	var groups []listedGroup
	for _, node := range nodes {
		request := kmsg.NewPtrListGroupsRequest()
		request.StatesFilter, request.TypesFilter = states, kinds
		response, err := cli.AskBroker[*kmsg.ListGroupsResponse](ctx, c.admin, node, "listGroups", request)
		if err != nil {
			return nil, err
		}
		if f := cli.APIFailure(response.ErrorCode, nil); f != nil {
			return nil, f
		}
		for _, g := range response.Groups {
			if g.ProtocolType == "" || g.ProtocolType == consumerProtocolType {
				groups = append(groups, listedGroup{g.Group, g.GroupType, g.GroupState})
			}
		}
	}
	cli.HashOrder(groups, 0, func(g listedGroup) string { return g.id })
	return groups, nil
}

// consumerProtocolType is the protocol type of groups of consumers.
const consumerProtocolType = "consumer"

// Widths of columns.
const (
	narrowColumn = 15
	wideColumn   = 20
)

func (c *consumerGroupsCommand) printListed(groups []listedGroup) {
	width := narrowColumn
	for _, g := range groups {
		width = max(width, len([]rune(g.id)))
	}
	line := func(g listedGroup) {
		text := fmt.Sprintf("%-*s", width+10, g.id)
		if c.kind.Has() {
			text += fmt.Sprintf(" %-*s", wideColumn, g.kind)
		}
		if c.state.Has() {
			text += fmt.Sprintf(" %-*s", wideColumn, g.state)
		}
		fmt.Fprintln(c.env.Stdout, text)
	}
	line(listedGroup{"GROUP", "TYPE", "STATE"})
	for _, g := range groups {
		g.kind = kindName(g.kind)
		line(g)
	}
}

// kindName is the name of a protocol as tools print it.
func kindName(kind string) string {
	for _, name := range append(consumerGroupKinds, "Share", "Streams") {
		if strings.EqualFold(name, kind) {
			return name
		}
	}
	return "Unknown"
}
