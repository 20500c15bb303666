package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// Special timestamps of ListOffsets.
const (
	latestOffset   = -1
	earliestOffset = -2
)

// newOffset is where a partition's offset is to be.
type newOffset struct {
	cli.Partition
	offset int64
}

// resetPlan are the new offsets of one group.
type resetPlan struct {
	group   string
	offsets []newOffset
}

func (c *consumerGroupsCommand) resetOffsets(ctx context.Context) error {
	ids := c.group.Values()
	if c.allGroups.Has() {
		var err error
		if ids, err = c.allGroupIDs(ctx); err != nil {
			return err
		}
	}
	groups, errs := c.describeAll(ctx, ids)
	plans := make([]resetPlan, len(groups))
	for i, g := range groups {
		plans[i].group = g.id
		if f := cli.AsFailure(errs[i]); f != nil && f.Code != codeGroupNotFound {
			return runtimeFailure(cli.Execution(f))
		} else if f == nil && g.state != "Empty" && g.state != "Dead" {
			c.failed("Assignments can only be reset if the group '"+g.id+"' is inactive, but the current state is "+
				g.state+".", nil)
			continue
		}
		var err error
		if plans[i].offsets, err = c.resetGroup(ctx, g.id); err != nil {
			return err
		}
	}
	if c.export.Has() {
		c.exportPlans(plans)
	} else {
		c.printPlans(plans)
	}
	return nil
}

// resetGroup works out the new offsets of a group without members, and sets them when asked to.
func (c *consumerGroupsCommand) resetGroup(ctx context.Context, id string) ([]newOffset, error) {
	partitions, err := c.partitionsToReset(ctx, id)
	if err != nil {
		return nil, err
	}
	led, err := c.checkPartitions(ctx, partitions)
	if err != nil {
		return nil, err
	}
	offsets, err := c.planned(ctx, id, led)
	if err != nil || !c.execute.Has() || c.dryRun.Has() {
		return offsets, err
	}
	return offsets, c.setOffsets(ctx, id, offsets)
}

// partitionsToReset is the scope: what --all-topics or --topic say.
func (c *consumerGroupsCommand) partitionsToReset(ctx context.Context, id string) ([]cli.Partition, error) {
	switch {
	case c.allTopics.Has():
		committed, err := c.committed(ctx, id)
		if err != nil {
			return nil, err
		}
		partitions := make([]cli.Partition, len(committed))
		for i, o := range committed {
			partitions[i] = o.Partition
		}
		return partitions, nil
	case c.topic.Has():
		partitions, missing, err := c.topicArguments(ctx)
		if err == nil && len(missing) > 0 {
			err = cli.APIFailure(codeUnknownTopic, nil)
		}
		return partitions, err
	case !c.fromFile.Has():
		return nil, cli.Usagef("One of the reset scopes should be defined: --all-topics, --topic.")
	}
	return nil, nil
}

// topicArguments are the partitions that --topic names: those with numbers first, then all of the topics without.
// Topics without numbers that do not exist are returned apart.
func (c *consumerGroupsCommand) topicArguments(ctx context.Context) (all []cli.Partition, missing []string, err error) {
	var whole []string
	for _, argument := range c.topic.Values() {
		if !strings.Contains(argument, ":") {
			whole = append(whole, argument)
			continue
		}
		some, err := parseTopicArgument(argument)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, some...)
	}
	if whole == nil {
		return all, nil, nil
	}
	topics, err := c.admin.Topics(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range whole {
		i := slices.IndexFunc(topics, func(t cli.Topic) bool { return t.Topic != nil && *t.Topic == name })
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		for _, p := range cli.Partitions(topics[i : i+1]) {
			all = append(all, bare(p))
		}
	}
	return all, missing, nil
}

// parseTopicArgument reads NAME:0,1,2.
func parseTopicArgument(argument string) (all []cli.Partition, err error) {
	parts := strings.Split(strings.TrimRight(argument, ":"), ":")
	if len(parts) != 2 {
		return nil, cli.BadArgument("Invalid topic arg '%s', expected topic name and partitions", argument)
	}
	for text := range strings.SplitSeq(strings.TrimRight(parts[1], ","), ",") {
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, cli.BadArgument("Invalid partition '%s' specified in topic arg '%s''", text, argument)
		}
		all = append(all, cli.Partition{Topic: parts[0], ID: int32(id)})
	}
	return all, nil
}

// leaders finds who leads partitions.
func (c *consumerGroupsCommand) leaders(ctx context.Context, partitions []cli.Partition) ([]cli.Partition, error) {
	topics, err := c.admin.Topics(ctx)
	if err != nil {
		return nil, runtimeFailure(cli.Execution(err))
	}
	led := slices.Clone(partitions)
	for i, p := range led {
		k := slices.IndexFunc(topics, func(t cli.Topic) bool { return t.Topic != nil && *t.Topic == p.Topic })
		if k < 0 {
			return nil, runtimeFailure(cli.Execution(cli.APIFailure(codeUnknownTopic, nil)))
		}
		led[i].Leader = noPartition
		for _, known := range topics[k].Partitions {
			if known.Partition == p.ID {
				led[i].Leader = known.Leader
			}
		}
	}
	return led, nil
}

// noPartition stands for the leader of a partition that does not exist; -1 is none.
const noPartition = math.MinInt32

// checkPartitions tells whether partitions exist and are led; it returns them with their leaders.
func (c *consumerGroupsCommand) checkPartitions(ctx context.Context, partitions []cli.Partition,
) ([]cli.Partition, error) {
	if len(partitions) == 0 {
		return nil, nil
	}
	led, err := c.leaders(ctx, partitions)
	if err != nil {
		return nil, err
	}
	var missing, leaderless []string
	for _, p := range led {
		switch {
		case p.Leader == noPartition:
			missing = append(missing, partitionName(p))
		case p.Leader < 0:
			leaderless = append(leaderless, partitionName(p))
		}
	}
	const errorClasses = "org.apache.kafka.common.errors."
	if missing != nil {
		return nil, cli.Fail(errorClasses+"UnknownTopicOrPartitionException",
			"The partitions \"%s\" do not exist", strings.Join(missing, ","))
	}
	if leaderless != nil {
		return nil, cli.Fail(errorClasses+"LeaderNotAvailableException",
			"The partitions \"%s\" have no leader", strings.Join(leaderless, ","))
	}
	return led, nil
}

// logOffsets looks up a time, or a special one, in partitions. -1 stands for none.
func (c *consumerGroupsCommand) logOffsets(ctx context.Context, led []cli.Partition, timestamp int64,
) (map[cli.Partition]int64, error) {
	found, err := c.admin.ListOffsets(ctx, slices.DeleteFunc(slices.Clone(led), func(p cli.Partition) bool {
		return p.Leader < 0
	}), timestamp)
	if err != nil {
		return nil, runtimeFailure(cli.Execution(err))
	}
	offsets := map[cli.Partition]int64{}
	for _, f := range found {
		if f.Err != nil {
			return nil, runtimeFailure(cli.Execution(f.Err))
		}
		offsets[bare(f.Partition)] = f.Offset
	}
	return offsets, nil
}

// planned works out the new offsets by the scenario that is given.
func (c *consumerGroupsCommand) planned(ctx context.Context, id string, led []cli.Partition) ([]newOffset, error) {
	switch {
	case c.toOffset.Has():
		offset, err := c.toOffset.Int()
		if err != nil {
			return nil, err
		}
		return c.inRange(ctx, led, func(cli.Partition) int64 { return offset })
	case c.toEarliest.Has():
		return c.at(ctx, led, earliestOffset)
	case c.toLatest.Has():
		return c.at(ctx, led, latestOffset)
	case c.shiftBy.Has():
		return c.shifted(ctx, id, led)
	case c.toDatetime.Has(), c.byDuration.Has():
		timestamp, err := c.timestamp()
		if err != nil {
			return nil, err
		}
		return c.atTime(ctx, led, timestamp)
	case c.fromFile.Has():
		return c.fromPlan(ctx, id)
	case c.toCurrent.Has():
		return c.current(ctx, id, led)
	}
	var names []string
	for _, o := range c.scenarios() {
		names = append(names, o.String())
	}
	return nil, cli.Usagef("Option '%s' requires one of the following scenarios: [%s]", c.reset,
		strings.Join(names, ", "))
}

func hashOrdered(offsets []newOffset) []newOffset {
	cli.HashOrderBy(offsets, 0, func(o newOffset) uint32 { return partitionHash(o.Partition) })
	return offsets
}

func (c *consumerGroupsCommand) at(ctx context.Context, led []cli.Partition, special int64) ([]newOffset, error) {
	found, err := c.logOffsets(ctx, led, special)
	if err != nil {
		return nil, err
	}
	offsets := make([]newOffset, len(led))
	for i, p := range led {
		offsets[i] = newOffset{bare(p), found[bare(p)]}
	}
	return hashOrdered(offsets), nil
}

// inRange are offsets that are asked for, moved into the log where they are outside.
func (c *consumerGroupsCommand) inRange(ctx context.Context, led []cli.Partition, asked func(cli.Partition) int64,
) ([]newOffset, error) {
	starts, err := c.logOffsets(ctx, led, earliestOffset)
	if err != nil {
		return nil, err
	}
	ends, err := c.logOffsets(ctx, led, latestOffset)
	if err != nil {
		return nil, err
	}
	offsets := make([]newOffset, len(led))
	for i, p := range led {
		offsets[i] = newOffset{bare(p), asked(bare(p))}
	}
	hashOrdered(offsets)
	for i := range offsets {
		o := &offsets[i]
		warn := func(what string, to int64) {
			c.env.Log("WARN", consumerGroupsLogger, fmt.Sprintf("New offset (%d) is %s offset for topic partition %s. "+
				"Value will be set to %d", o.offset, what, partitionName(o.Partition), to))
			o.offset = to
		}
		if end := ends[o.Partition]; o.offset > end {
			warn("higher than latest", end)
		} else if start := starts[o.Partition]; o.offset < start {
			warn("lower than earliest", start)
		}
	}
	return offsets, nil
}

func (c *consumerGroupsCommand) shifted(ctx context.Context, id string, led []cli.Partition) ([]newOffset, error) {
	by, err := c.shiftBy.Int()
	if err != nil {
		return nil, err
	}
	present, err := c.presentOffsets(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, p := range led {
		if _, ok := present[bare(p)]; !ok {
			return nil, cli.BadArgument("Cannot shift offset for partition %s since there is no current committed offset",
				partitionName(p))
		}
	}
	return c.inRange(ctx, led, func(p cli.Partition) int64 { return present[p] + by })
}

func (c *consumerGroupsCommand) presentOffsets(ctx context.Context, id string) (map[cli.Partition]int64, error) {
	committed, err := c.committed(ctx, id)
	if err != nil {
		return nil, err
	}
	present := map[cli.Partition]int64{}
	for _, o := range committed {
		present[o.Partition] = o.offset
	}
	return present, nil
}

// atTime finds the first record that is not older; where there is none, the end.
func (c *consumerGroupsCommand) atTime(ctx context.Context, led []cli.Partition, timestamp int64) ([]newOffset, error) {
	found, err := c.logOffsets(ctx, led, timestamp)
	if err != nil {
		return nil, err
	}
	var none []cli.Partition
	for _, p := range led {
		if found[bare(p)] < 0 {
			none = append(none, p)
		}
	}
	cli.HashOrderBy(none, 0, partitionHash)
	for _, p := range none {
		fmt.Fprintf(c.env.Stdout, "\nWarn: Partition %d from topic %s is empty. Falling back to latest known offset.\n",
			p.ID, p.Topic)
	}
	ends, err := c.logOffsets(ctx, none, latestOffset)
	if err != nil {
		return nil, err
	}
	offsets := make([]newOffset, len(led))
	for i, p := range led {
		offsets[i] = newOffset{bare(p), found[bare(p)]}
		if end, ok := ends[bare(p)]; ok {
			offsets[i].offset = end
		}
	}
	return hashOrdered(offsets), nil
}

// current keeps the offsets; a partition without one gets its end.
func (c *consumerGroupsCommand) current(ctx context.Context, id string, led []cli.Partition) ([]newOffset, error) {
	present, err := c.presentOffsets(ctx, id)
	if err != nil {
		return nil, err
	}
	var offsets []newOffset
	var without []cli.Partition
	for _, p := range led {
		if offset, ok := present[bare(p)]; ok {
			offsets = append(offsets, newOffset{bare(p), offset})
		} else {
			without = append(without, p)
		}
	}
	more, err := c.at(ctx, without, latestOffset)
	return hashOrdered(append(offsets, more...)), err
}

// fromPlan reads the offsets of a group from the file of --from-file.
func (c *consumerGroupsCommand) fromPlan(ctx context.Context, id string) ([]newOffset, error) {
	plans, err := c.readPlans()
	if err != nil {
		return nil, err
	}
	plan, ok := plans[id]
	if !ok {
		c.failed("No reset plan for group "+id+" found", nil)
		return nil, nil
	}
	asked := map[cli.Partition]int64{}
	var partitions []cli.Partition
	for _, o := range plan {
		if _, twice := asked[o.Partition]; !twice {
			partitions = append(partitions, o.Partition)
		}
		asked[o.Partition] = o.offset
	}
	led, err := c.leaders(ctx, partitions)
	if err != nil {
		return nil, err
	}
	return c.inRange(ctx, led, func(p cli.Partition) int64 { return asked[p] })
}

// readPlans reads a CSV file: lines of topic, partition and offset for the one group that is given, or lines that
// begin with the group.
func (c *consumerGroupsCommand) readPlans() (map[string][]newOffset, error) {
	name, err := c.fromFile.Value()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		f := cli.Fail("java.io.IOException", "Unable to read file %s", name)
		f.Cause = cli.Fail("java.nio.file.NoSuchFileException", "%s", name)
		return nil, runtimeFailure(f)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	groups := c.group.Values()
	_, firstErr := parsePlanLine(lines[0], 0)
	if firstErr != nil {
		// Kafka reads the file twice for each group.
		fmt.Fprint(c.env.Stderr, strings.Repeat(cli.AsFailure(firstErr).Trace(), 2))
	}
	withGroup := 1
	if len(groups) == 1 && firstErr == nil {
		withGroup = 0
	}
	plans := map[string][]newOffset{}
	for _, line := range lines {
		offset, err := parsePlanLine(line, withGroup)
		if err != nil {
			return nil, runtimeFailure(err)
		}
		group := ""
		if withGroup == 1 {
			group = splitCSV(line)[0]
		} else {
			group = groups[0]
		}
		plans[group] = append(plans[group], offset)
	}
	return plans, nil
}

// parsePlanLine reads topic, partition and offset, after some fields.
func parsePlanLine(line string, skip int) (newOffset, error) {
	fields := splitCSV(strings.TrimSuffix(line, "\r"))
	for len(fields) < skip+3 {
		fields = append(fields, "0") // Kafka's reader leaves out what is missing
	}
	const invalid = "com.fasterxml.jackson.databind.exc.InvalidFormatException"
	id, err := strconv.ParseInt(strings.TrimSpace(fields[skip+1]), 10, 32)
	if err != nil {
		return newOffset{}, cli.Fail(invalid,
			"Cannot deserialize value of type `int` from String \"%s\": not a valid `int` value", fields[skip+1])
	}
	offset, err := strconv.ParseInt(strings.TrimSpace(fields[skip+2]), 10, 64)
	if err != nil {
		return newOffset{}, cli.Fail(invalid,
			"Cannot deserialize value of type `long` from String \"%s\": not a valid `long` value", fields[skip+2])
	}
	return newOffset{cli.Partition{Topic: fields[skip], ID: int32(id)}, offset}, nil
}

// splitCSV splits a line at commas outside of quotes.
func splitCSV(line string) (fields []string) {
	var field strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case b == '"' && quoted && i+1 < len(line) && line[i+1] == '"':
			field.WriteByte(b)
			i++
		case b == '"':
			quoted = !quoted
		case b == ',' && !quoted:
			fields = append(fields, field.String())
			field.Reset()
		default:
			field.WriteByte(b)
		}
	}
	return append(fields, field.String())
}

// setOffsets commits offsets in the name of a group without members.
func (c *consumerGroupsCommand) setOffsets(ctx context.Context, id string, offsets []newOffset) error {
	topics, err := c.admin.Topics(ctx)
	if err != nil {
		return err
	}
	ids := map[string][16]byte{}
	for _, t := range topics {
		ids[cli.OrNull(t.Topic)] = t.TopicID
	}
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Group, request.Generation = id, -1
	for _, o := range offsets {
		i := slices.IndexFunc(request.Topics, func(t kmsg.OffsetCommitRequestTopic) bool { return t.Topic == o.Topic })
		if i < 0 {
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = o.Topic, ids[o.Topic]
			request.Topics = append(request.Topics, t)
			i = len(request.Topics) - 1
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = o.ID, o.offset, kmsg.StringPtr("")
		request.Topics[i].Partitions = append(request.Topics[i].Partitions, p)
	}
	response, _, err := askCoordinator(ctx, c, "alterConsumerGroupOffsets", id, request, commitCode)
	if err != nil {
		return err
	}
	return groupFailure(commitCode(response), nil)
}

// commitCode is the first error among the partitions.
func commitCode(r *kmsg.OffsetCommitResponse) int16 {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return p.ErrorCode
			}
		}
	}
	return 0
}

func (c *consumerGroupsCommand) printPlans(plans []resetPlan) {
	var group, topic widest
	for _, p := range plans {
		group.add(p.group)
		for _, o := range p.offsets {
			topic.add(o.Topic)
		}
	}
	line := func(id, name, partition, offset string) {
		fmt.Fprintf(c.env.Stdout, "\n%-*s %-*s %-10s %s", group.width(), id, topic.width(), name, partition, offset)
	}
	if len(plans) > 0 {
		line("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
	}
	for _, p := range plans {
		for _, o := range p.offsets {
			line(p.group, o.Topic, strconv.Itoa(int(o.ID)), strconv.FormatInt(o.offset, 10))
		}
	}
	fmt.Fprintln(c.env.Stdout)
}

// exportPlans prints plans as --from-file reads them.
func (c *consumerGroupsCommand) exportPlans(plans []resetPlan) {
	for _, p := range plans {
		for _, o := range p.offsets {
			if len(c.group.Values()) != 1 {
				fmt.Fprint(c.env.Stdout, csvField(p.group)+",")
			}
			fmt.Fprintf(c.env.Stdout, "%s,%d,%d\n", csvField(o.Topic), o.ID, o.offset)
		}
	}
	fmt.Fprintln(c.env.Stdout)
}

// csvField quotes a field where Kafka's writer does: long ones, and those with characters before '-'.
func csvField(s string) string {
	const longest = 24
	if len([]rune(s)) <= longest && !strings.ContainsFunc(s, func(r rune) bool { return r < '-' }) {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
