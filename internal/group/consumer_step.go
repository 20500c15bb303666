package group

import (
	"errors"
	"maps"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"

	"tidemark/internal/metadata"
	"tidemark/internal/wire"
)

// membership are the members of a consumer group as they will be after a step, by id.
type membership []*consumerMember

// with are the members after one was put in its place: its own, or that of the static member it replaces.
func (c *consumer) with(next *consumerMember) membership {
	all := make(membership, 0, len(c.members)+1)
	for _, id := range c.memberIDs() {
		m := c.members[id]
		replaced := next.instanceID != nil && m.instanceID != nil && *m.instanceID == *next.instanceID
		if id != next.id && !replaced {
			all = append(all, m)
		}
	}
	all = append(all, next)
	slices.SortFunc(all, func(a, b *consumerMember) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return all
}

// without are the members that are left when some are gone.
func (c *consumer) without(gone []*consumerMember) membership {
	var all membership
	for _, id := range c.memberIDs() {
		if m := c.members[id]; !slices.Contains(gone, m) {
			all = append(all, m)
		}
	}
	return all
}

func (all membership) wantsPattern(regex string) bool {
	return slices.ContainsFunc(all, func(m *consumerMember) bool { return m.pattern() == regex })
}

// patterns are those that members are subscribed to, sorted.
func (all membership) patterns() []string {
	found := map[string]bool{}
	for _, m := range all {
		if p := m.pattern(); p != "" {
			found[p] = true
		}
	}
	return sortedKeys(found)
}

// topics are the names that members are subscribed to, those too that patterns match, sorted.
func (all membership) topics(regexes map[string]resolved) []string {
	found := map[string]bool{}
	for _, m := range all {
		for _, t := range m.topics {
			found[t] = true
		}
	}
	for _, pattern := range all.patterns() {
		for _, t := range regexes[pattern].topics {
			found[t] = true
		}
	}
	return sortedKeys(found)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// leastPatternRefreshMs is the least time between two looks for the topics of patterns.
//
// Kafka: GroupMetadataManager.REGEX_BATCH_REFRESH_MIN_INTERVAL_MS.
const leastPatternRefreshMs = 10_000

// takeWishes writes down what a member wishes. changed: it wants other topics than before; bump: the group needs
// another target for that.
func (s *step) takeWishes(old, next *consumerMember) (changed, bump bool, err error) {
	if !old.sameWishes(next) {
		s.put(kindMember, next.id, next.appendTo(nil))
	}
	changed = !slices.Equal(old.topics, next.topics)
	bump = changed
	refresh := false
	before, after := old.pattern(), next.pattern()
	if before != after {
		changed = true
		left := s.c.with(next)
		if before != "" && !left.wantsPattern(before) {
			s.records = append(s.records, Record{Key: Key{Kind: kindRegex, Group: s.c.id, Regex: before}.AppendTo(nil)})
		}
		_, isResolved := s.c.regexes[after]
		switch {
		case after == "":
			bump = true
		case !s.c.without(nil).wantsPattern(after):
			if _, err := compilePattern(after); err != nil {
				return false, false, err
			}
			refresh = true
		case isResolved:
			bump = true
		}
	}
	s.regexes = s.needsPatterns(next, refresh)
	return changed, bump, nil
}

// needsPatterns tells whether the topics of patterns are to be looked for again.
func (s *step) needsPatterns(next *consumerMember, refresh bool) bool {
	c := s.c
	patterns := c.with(next).patterns()
	if len(patterns) == 0 {
		return false
	}
	now, last, version := c.m.host.NowMs(), int64(math.MinInt64), int64(0)
	for _, r := range c.regexes {
		last, version = r.timestampMs, r.version
		break
	}
	if last != math.MinInt64 && now <= last+leastPatternRefreshMs {
		return false
	}
	return refresh || len(patterns) != len(c.regexes) || version < c.m.o.TopicsCreatedAt() ||
		now > last+c.m.o.Config().PatternRefreshMs
}

// compilePattern reads a pattern of topics, which must match the whole name.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, refuse(ErrInvalidRegex, "SubscribedTopicRegex `%s` is not a valid regular expression: %s.", pattern,
			patternError(err))
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// patternError is what is wrong with a pattern.
func patternError(err error) string {
	var bad *syntax.Error
	if errors.As(err, &bad) {
		return bad.Code.String()
	}
	return err.Error()
}

// resolvePatterns looks for the topics that the members' patterns match. The group gets another target when they are
// others than before.
func (c *consumer) resolvePatterns() *Write {
	s := &step{c: c, image: c.m.o.Image()}
	all := c.without(nil)
	now, bump := c.m.host.NowMs(), false
	next := map[string]resolved{}
	for _, pattern := range all.patterns() {
		r := resolved{topics: c.matching(s.image, pattern), version: s.image.Offset(), timestampMs: now}
		bump = bump || !slices.Equal(r.topics, c.regexes[pattern].topics)
		next[pattern] = r
		s.records = append(s.records, Record{Key: Key{Kind: kindRegex, Group: c.id, Regex: pattern}.AppendTo(nil),
			Value: r.encode()})
	}
	hash := c.m.hashes.group(s.image, all.topics(next))
	if bump || hash != c.metadataHash {
		s.put(kindEpoch, "", encodeEpoch(c.epoch+1, hash))
	}
	return c.m.replayed(s.records)
}

func (c *consumer) matching(image *metadata.Image, pattern string) []string {
	visible := c.m.viewers[c.id]
	expression, err := compilePattern(pattern)
	if err != nil {
		c.m.log.Warn("pattern of topics cannot be used", "group", c.id, "pattern", pattern, "error", err)
		return nil
	}
	var topics []string
	for t := range image.Topics() {
		if expression.MatchString(t.Name) && (visible == nil || visible(t.Name)) {
			topics = append(topics, t.Name)
		}
	}
	return sortedTopics(topics)
}

// advance raises the group's epoch where the members' topics are others than before, or have other partitions.
func (s *step) advance(next *consumerMember, bump bool) {
	c := s.c
	s.epoch = c.epoch
	if !bump && c.checked == s.image {
		return
	}
	hash := c.m.hashes.group(s.image, c.with(next).topics(c.regexes))
	if bump || hash != c.metadataHash {
		s.epoch++
		s.put(kindEpoch, "", encodeEpoch(s.epoch, hash))
		c.m.log.Info("group has a new epoch", "group", c.id, "epoch", s.epoch)
	} else {
		c.checked = s.image
	}
	if c.oldMetadata {
		s.put(kindPartitionMetadata, "", nil)
	}
}

// aim finds the target of a member and its epoch. A new one is computed when the group's epoch has risen, but not
// more often than the assignment interval allows.
func (s *step) aim(next *consumerMember) (target, int32) {
	c := s.c
	now, interval := c.m.host.NowMs(), int64(c.m.o.ConsumerConfig(c.id).AssignmentIntervalMs)
	if c.assignmentEpoch >= s.epoch || c.assignmentMs != 0 && interval != 0 && now < c.assignmentMs+interval {
		return c.lastTarget(next), c.assignmentEpoch
	}
	return s.retarget(next), s.epoch
}

// lastTarget is the target of a member, or of the static one it replaces.
func (c *consumer) lastTarget(m *consumerMember) target {
	if m.instanceID != nil {
		return c.targets[c.static[*m.instanceID]]
	}
	return c.targets[m.id]
}

// retarget computes the target of all members and returns that of one.
func (s *step) retarget(next *consumerMember) target {
	c := s.c
	members := c.with(next)
	spec := assignmentSpec{image: s.image}
	for _, m := range members {
		one := assignee{id: m.id, instanceID: m.instanceID, topics: c.topicIDs(s.image, m), had: c.targets[m.id]}
		if m == next {
			one.had = c.lastTarget(m)
		}
		spec.members = append(spec.members, one)
	}
	spec.homogeneous = isHomogeneous(members)
	assigned := assignors[c.assignorFor(members)](&spec)
	for _, m := range members {
		if had, ok := c.targets[m.id]; !ok || !had.same(assigned[m.id]) {
			s.put(kindTarget, m.id, encodeTarget(assigned[m.id]))
		}
	}
	s.put(kindTargetEpoch, "", encodeTargetEpoch(s.epoch, c.m.host.NowMs()))
	return assigned[next.id]
}

func (t target) same(o target) bool {
	return maps.EqualFunc(t, o, func(a, b []int32) bool { return slices.Equal(a, b) })
}

// isHomogeneous tells whether all members are subscribed to the same.
func isHomogeneous(all membership) bool {
	for _, m := range all {
		if !slices.Equal(m.topics, all[0].topics) || m.pattern() != all[0].pattern() {
			return false
		}
	}
	return true
}

// assignorFor is the assignor that most members ask for; the first one that is offered when none does.
func (c *consumer) assignorFor(all membership) string {
	votes := map[string]int{}
	for _, m := range all {
		if m.assignor != nil {
			votes[*m.assignor]++
		}
	}
	best := ""
	for _, name := range sortedKeys(votes) {
		if _, known := assignors[name]; known && votes[name] > votes[best] {
			best = name
		}
	}
	if best == "" {
		best = c.m.o.Config().ConsumerAssignors[0]
	}
	if _, known := assignors[best]; !known {
		best = UniformAssignor
	}
	return best
}

// topicIDs are the topics that exist among those that a member is subscribed to.
func (c *consumer) topicIDs(image *metadata.Image, m *consumerMember) map[wire.UUID]bool {
	ids := map[wire.UUID]bool{}
	add := func(names []string) {
		for _, name := range names {
			if t := image.Topic(name); t != nil {
				ids[t.ID] = true
			}
		}
	}
	add(m.topics)
	if p := m.pattern(); p != "" {
		add(c.regexes[p].topics)
	}
	return ids
}
