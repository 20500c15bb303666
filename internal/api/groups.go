package api

import (
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/auth"
	"tidemark/internal/group"
)

// groupCodes maps the errors of groups to Kafka's error codes; see codes.
var groupCodes = []errorCode{
	{group.ErrInvalidGroupID, kerr.InvalidGroupID.Code},
	{group.ErrInvalidSessionTimeout, kerr.InvalidSessionTimeout.Code},
	{group.ErrInconsistentProtocol, kerr.InconsistentGroupProtocol.Code},
	{group.ErrUnknownMember, kerr.UnknownMemberID.Code},
	{group.ErrIllegalGeneration, kerr.IllegalGeneration.Code},
	{group.ErrRebalance, kerr.RebalanceInProgress.Code},
	{group.ErrMemberIDRequired, kerr.MemberIDRequired.Code},
	{group.ErrMaxSize, kerr.GroupMaxSizeReached.Code},
	{group.ErrFencedInstance, kerr.FencedInstanceID.Code},
	{group.ErrNotFound, kerr.GroupIDNotFound.Code},
	{group.ErrNotEmpty, kerr.NonEmptyGroup.Code},
	{group.ErrSubscribed, kerr.GroupSubscribedToTopic.Code},
	{group.ErrMetadataTooLarge, kerr.OffsetMetadataTooLarge.Code},
	{group.ErrUnstableOffset, kerr.UnstableOffsetCommit.Code},
	{group.ErrUnexpected, kerr.UnknownServerError.Code},
	{group.ErrInvalidRequest, kerr.InvalidRequest.Code},
	{group.ErrUnsupportedVersion, kerr.UnsupportedVersion.Code},
	{group.ErrFencedMemberEpoch, kerr.FencedMemberEpoch.Code},
	{group.ErrUnreleasedInstance, kerr.UnreleasedInstanceID.Code},
	{group.ErrUnsupportedAssignor, kerr.UnsupportedAssignor.Code},
	{group.ErrStaleMemberEpoch, kerr.StaleMemberEpoch.Code},
	{group.ErrInvalidRegex, kerr.InvalidRegularExpression.Code},
}

// groupOperations are the operations that exist on groups; see operations.
var groupOperations = []auth.Operation{auth.Read, auth.Delete, auth.Describe, auth.DescribeConfigs,
	auth.AlterConfigs}

// clientHost is the address of a client as Kafka stores and shows it: as Java writes one without a host name.
func (c *call) clientHost() string { return "/" + javaAddress(c.request.Conn.Remote.Addr()) }

// javaAddress is an address as Java's getHostAddress writes it: IPv6 without compression.
func javaAddress(a netip.Addr) string {
	a = a.Unmap()
	if !a.Is6() {
		return a.String()
	}
	b := a.As16()
	parts := make([]string, 8)
	for i := range parts {
		parts[i] = strconv.FormatUint(uint64(b[2*i])<<8|uint64(b[2*i+1]), 16)
	}
	text := strings.Join(parts, ":")
	if a.Zone() != "" {
		text += "%" + a.Zone()
	}
	return text
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// gather returns where n answers are put, each once, in any order and from any goroutine. When all are there done gets
// them, in the order of the questions; at once when there are none.
func gather[T any](n int, done func([]T)) (put func(i int, answer T)) {
	if n == 0 {
		done(nil)
	}
	answers := make([]T, n)
	var left atomic.Int64
	left.Store(int64(n))
	return func(i int, answer T) {
		answers[i] = answer
		if left.Add(-1) == 0 {
			done(answers)
		}
	}
}
