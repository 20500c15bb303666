package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tidemark/cmd/internal/cli"
)

func (c *consumerGroupsCommand) describeGroups(ctx context.Context) error {
	ids := c.group.Values()
	if c.allGroups.Has() {
		var err error
		if ids, err = c.allGroupIDs(ctx); err != nil {
			return err
		}
	}
	groups, errs := c.describeAll(ctx, ids)
	for _, err := range errs {
		if err != nil {
			return cli.Execution(err)
		}
	}
	show := c.showOffsets
	switch {
	case c.members.Has():
		show = c.showMembers
	case c.state.Has():
		show = c.showState
	}
	rows := make([][]offsetRow, len(groups))
	if !c.members.Has() && !c.state.Has() {
		for i, g := range groups {
			var err error
			if rows[i], err = c.offsetRows(ctx, g); err != nil {
				return err
			}
		}
	}
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(groups[a].id, groups[b].id) })
	for _, i := range order {
		if err := show(groups[i], rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// worthShowing tells of the state of a group, and whether there is more to show.
func (c *consumerGroupsCommand) worthShowing(g describedGroup, rows int) (bool, error) {
	switch g.state {
	case "Dead":
		c.failed("Consumer group '"+g.id+"' does not exist.", nil)
		return false, nil
	case "Empty":
		fmt.Fprintln(c.env.Stderr, "\nConsumer group '"+g.id+"' has no active members.")
	case "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling":
		fmt.Fprintln(c.env.Stderr, "\nWarning: Consumer group '"+g.id+"' is rebalancing.")
	case "Stable":
	default:
		return false, cli.Fail("org.apache.kafka.common.KafkaException",
			"Expected a valid consumer group state, but found '%s'.", g.state)
	}
	return rows > 0, nil
}

// absent stands where there is no value.
const absent = "-"

// offsetRow is a line of the table of offsets.
type offsetRow struct {
	topic, partition, epoch, current, end, lag string
	consumer, host, client                     string
}

// offsetRows are the partitions of members, of those with most first, and then the partitions that nobody has.
func (c *consumerGroupsCommand) offsetRows(ctx context.Context, g describedGroup) ([]offsetRow, error) {
	committed, err := c.committed(ctx, g.id)
	if err != nil {
		return nil, err
	}
	members := slices.DeleteFunc(slices.Clone(g.members), func(m describedMember) bool { return len(m.assigned) == 0 })
	slices.SortStableFunc(members, func(a, b describedMember) int { return cmp.Compare(len(b.assigned), len(a.assigned)) })
	var rows []offsetRow
	taken := map[cli.Partition]bool{}
	for _, m := range members {
		for _, p := range m.assigned {
			taken[p] = true
		}
		more, err := c.partitionRows(ctx, m.assigned, committed, offsetRow{consumer: m.id, host: m.host, client: m.client})
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	var free []cli.Partition
	for _, o := range committed {
		if !taken[o.Partition] {
			free = append(free, o.Partition)
		}
	}
	more, err := c.partitionRows(ctx, free, committed, offsetRow{consumer: absent, host: absent, client: absent})
	return append(rows, more...), err
}

func (c *consumerGroupsCommand) partitionRows(ctx context.Context, partitions []cli.Partition,
	committed []committedOffset, who offsetRow) ([]offsetRow, error) {
	if len(partitions) == 0 {
		return nil, nil
	}
	led, err := c.leaders(ctx, partitions)
	if err != nil {
		return nil, err
	}
	ends, err := c.logOffsets(ctx, led, latestOffset)
	if err != nil {
		return nil, err
	}
	sorted := slices.Clone(partitions)
	slices.SortFunc(sorted, func(a, b cli.Partition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.ID, b.ID))
	})
	rows := make([]offsetRow, len(sorted))
	for i, p := range sorted {
		row := who
		row.topic, row.partition = p.Topic, strconv.Itoa(int(p.ID))
		row.epoch, row.current, row.end, row.lag = absent, absent, absent, absent
		end, hasEnd := ends[bare(p)]
		if hasEnd {
			row.end = strconv.FormatInt(end, 10)
		}
		if k := slices.IndexFunc(committed, func(o committedOffset) bool { return o.Partition == bare(p) }); k >= 0 {
			row.current = strconv.FormatInt(committed[k].offset, 10)
			if committed[k].leaderEpoch >= 0 {
				row.epoch = strconv.Itoa(int(committed[k].leaderEpoch))
			}
			if hasEnd {
				row.lag = strconv.FormatInt(end-committed[k].offset, 10)
			}
		}
		rows[i] = row
	}
	return rows, nil
}

// bare is a partition without its leader, as a key.
func bare(p cli.Partition) cli.Partition { return cli.Partition{Topic: p.Topic, ID: p.ID} }

func (c *consumerGroupsCommand) showOffsets(g describedGroup, rows []offsetRow) error {
	if show, err := c.worthShowing(g, len(rows)); !show || err != nil {
		return err
	}
	var group, topic, consumer, host widest
	group.add(g.id)
	for _, r := range rows {
		topic.add(r.topic)
		consumer.add(r.consumer)
		host.add(r.host)
	}
	line := func(id string, r offsetRow) {
		epoch := ""
		if c.verbose.Has() {
			epoch = fmt.Sprintf(" %-*s", narrowColumn, r.epoch)
		}
		fmt.Fprintf(c.env.Stdout, "\n%-*s %-*s %-10s%s %-15s %-15s %-15s %-*s %-*s %s", group.width(), id, topic.width(),
			r.topic, r.partition, epoch, r.current, r.end, r.lag, consumer.width(), r.consumer, host.width(), r.host, r.client)
	}
	line("GROUP", offsetRow{"TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG",
		"CONSUMER-ID", "HOST", "CLIENT-ID"})
	for _, r := range rows {
		line(g.id, r)
	}
	fmt.Fprintln(c.env.Stdout)
	return nil
}

// widest is the width of a column: that of its longest text, 15 at least.
type widest int

func (w *widest) add(text string) { *w = max(*w, widest(len([]rune(text)))) }
func (w widest) width() int       { return max(narrowColumn, int(w)) }

func (c *consumerGroupsCommand) showState(g describedGroup, _ []offsetRow) error {
	if show, err := c.worthShowing(g, 1); !show || err != nil {
		return err
	}
	assignor := g.assignor
	if assignor == "" {
		assignor = absent
	}
	coordinator := g.coordinator.String()
	groupWidth, coordinatorWidth := max(narrowColumn, len(g.id)), max(25, len(coordinator))
	line := func(group, coordinator, assignor, state, epoch, assignmentEpoch, members string) {
		epochs := ""
		if c.verbose.Has() {
			epochs = fmt.Sprintf(" %-15s %-25s", epoch, assignmentEpoch)
		}
		fmt.Fprintf(c.env.Stdout, "\n%-*s %-*s %-20s %-20s%s %s", groupWidth, group, coordinatorWidth, coordinator,
			assignor, state, epochs, members)
	}
	line("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS")
	line(g.id, coordinator, assignor, g.state, numberOrAbsent(g.epoch), numberOrAbsent(g.assignmentEpoch),
		strconv.Itoa(len(g.members)))
	fmt.Fprintln(c.env.Stdout)
	return nil
}

func numberOrAbsent(n *int32) string {
	if n == nil {
		return absent
	}
	return strconv.Itoa(int(*n))
}

// memberTable is the table of a group's members.
type memberTable struct {
	group, consumer, host, client  widest
	instance                       int
	current, target                int
	hasInstance, classic, consumes bool
}

func newMemberTable(g describedGroup) memberTable {
	t := memberTable{instance: len("GROUP-INSTANCE-ID"), current: wideColumn, target: wideColumn}
	for _, m := range g.members {
		t.group.add(g.id)
		t.consumer.add(m.id)
		t.host.add(m.host)
		t.client.add(m.client)
		t.instance = max(t.instance, len([]rune(m.instance)))
		t.hasInstance = t.hasInstance || m.instance != ""
		t.current = max(t.current, len([]rune(assignmentText(m.assigned))))
		t.target = max(t.target, len([]rune(assignmentText(m.target))))
		if m.upgraded != nil {
			t.classic, t.consumes = t.classic || !*m.upgraded, t.consumes || *m.upgraded
		}
	}
	return t
}

// assignmentText lists partitions as "a:0,1;b:2".
func assignmentText(all []cli.Partition) string {
	if len(all) == 0 {
		return absent
	}
	byTopic := map[string][]int{}
	for _, p := range all {
		byTopic[p.Topic] = append(byTopic[p.Topic], int(p.ID))
	}
	var texts []string
	for topic, ids := range byTopic {
		slices.Sort(ids)
		numbers := make([]string, len(ids))
		for i, id := range ids {
			numbers[i] = strconv.Itoa(id)
		}
		texts = append(texts, topic+":"+strings.Join(numbers, ","))
	}
	slices.Sort(texts)
	return strings.Join(texts, ";")
}

func (c *consumerGroupsCommand) showMembers(g describedGroup, _ []offsetRow) error {
	show, err := c.worthShowing(g, len(g.members))
	if err != nil {
		return err
	}
	t := newMemberTable(g)
	if !show {
		t = newMemberTable(describedGroup{})
	}
	migrating := t.classic && t.consumes
	line := func(group, consumer, instance, host, client, partitions string, more ...string) {
		text := fmt.Sprintf("%-*s %-*s ", t.group.width(), group, t.consumer.width(), consumer)
		if t.hasInstance {
			text += fmt.Sprintf("%-*s ", t.instance, instance)
		}
		text += fmt.Sprintf("%-*s %-*s %-15s ", t.host.width(), host, t.client.width(), client, partitions)
		if c.verbose.Has() {
			text += fmt.Sprintf("%-15s %-*s %-15s %-*s", more[0], t.current, more[1], more[2], t.target, more[3])
			if migrating {
				text += " " + more[4]
			}
		}
		fmt.Fprintln(c.env.Stdout, text)
	}
	fmt.Fprintln(c.env.Stdout)
	line("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "CURRENT-EPOCH",
		"CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED")
	for _, m := range g.members {
		upgraded := absent
		if m.upgraded != nil {
			upgraded = strconv.FormatBool(*m.upgraded)
		}
		line(g.id, m.id, m.instance, m.host, m.client, strconv.Itoa(len(m.assigned)), numberOrAbsent(m.epoch),
			assignmentText(m.assigned), numberOrAbsent(g.assignmentEpoch), assignmentText(m.target), upgraded)
	}
	return nil
}
