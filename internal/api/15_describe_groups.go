package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/group"
)

// DescribeGroups (15).
//
// v1: throttle time. v3: authorized operations (KIP-430). v4: instance ids (KIP-345). v5: flexible.
// v6: GROUP_ID_NOT_FOUND with a message (KIP-1043).

const notFoundInDescribe = 6

func (a *API) describeGroups(c *call, request *kmsg.DescribeGroupsRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.DescribeGroupsResponse](request)
	put := gather(len(request.Groups), func(all []kmsg.DescribeGroupsResponseGroup) {
		response.Groups = all
		done(response)
	})
	for i, id := range request.Groups {
		set := func(d group.Description, err error) {
			out := a.describedGroup(c, id, d, err)
			if out.ErrorCode == none && request.IncludeAuthorizedOperations {
				out.AuthorizedOperations = a.operations(c, groupOperations, auth.Group(id))
			}
			put(i, out)
		}
		if !a.allowed(c, auth.Describe, auth.Group(id)) {
			set(group.Description{}, kerr.GroupAuthorizationFailed)
			continue
		}
		a.Groups.Describe(id, set)
	}
}

func (a *API) describedGroup(c *call, id string, d group.Description, err error) kmsg.DescribeGroupsResponseGroup {
	out := kmsg.NewDescribeGroupsResponseGroup()
	out.Group = id
	switch {
	case errors.Is(err, group.ErrNotFound):
		out.State = group.Dead.String()
		if c.version() >= notFoundInDescribe {
			out.ErrorCode, out.ErrorMessage = a.failed(c, err), kmsg.StringPtr(err.Error())
		}
		return out
	case err != nil:
		out.ErrorCode = a.failed(c, err)
		return out
	}
	out.State, out.ProtocolType, out.Protocol = d.State.String(), d.ProtocolType, d.Protocol
	for _, m := range d.Members {
		one := kmsg.NewDescribeGroupsResponseGroupMember()
		one.MemberID, one.InstanceID = m.ID, m.InstanceID
		one.ClientID, one.ClientHost = m.ClientID, m.ClientHost
		one.ProtocolMetadata, one.MemberAssignment = m.Metadata, m.Assignment
		out.Members = append(out.Members, one)
	}
	return out
}
