package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/quorum"
)

// AlterUserScramCredentials (51).
//
// v0: KIP-554.

func (a *API) alterUserScramCredentials(c *call, request *kmsg.AlterUserSCRAMCredentialsRequest) kmsg.Response {
	var alter controller.AlterUserScramCredentials
	for _, x := range request.Deletions {
		alter.Deletions = append(alter.Deletions, controller.ScramDeletion{User: x.Name, Mechanism: x.Mechanism})
	}
	for _, x := range request.Upsertions {
		alter.Upsertions = append(alter.Upsertions, controller.ScramUpsertion{User: x.Name, Mechanism: x.Mechanism,
			Iterations: x.Iterations, Salt: x.Salt, SaltedPassword: x.SaltedPassword})
	}
	err := error(kerr.ClusterAuthorizationFailed)
	var result controller.AlterScramResult
	if a.allowed(c, auth.Alter, auth.Cluster) {
		result, err = quorum.Ask[controller.AlterScramResult](c.ctx, a.Metadata, alter, c.caller.Principal)
	}
	if err != nil {
		result = everyUser(alter)
	} else {
		a.warnUnchecked(result)
	}
	response := answerTo[*kmsg.AlterUserSCRAMCredentialsResponse](request)
	for _, u := range result.Users {
		out := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
		out.User = u.User
		out.ErrorCode, out.ErrorMessage = a.outcome(c, u.Err, err)
		response.Results = append(response.Results, out)
	}
	return response
}

// everyUser has each user of a command that was refused as a whole, once.
func everyUser(alter controller.AlterUserScramCredentials) (all controller.AlterScramResult) {
	seen := map[string]bool{}
	add := func(user string) {
		if !seen[user] {
			seen[user] = true
			all.Users = append(all.Users, controller.AlteredScram{User: user})
		}
	}
	for _, x := range alter.Deletions {
		add(x.User)
	}
	for _, x := range alter.Upsertions {
		add(x.User)
	}
	return all
}

// warnUnchecked says that credentials have no effect yet.
func (a *API) warnUnchecked(r controller.AlterScramResult) {
	for _, u := range r.Users {
		if u.Err == nil {
			a.Logger.Warn("a SCRAM credential was stored and has no effect: authentication is not built",
				"users", len(r.Users))
			return
		}
	}
}
