package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/metadata"
)

// DescribeUserScramCredentials (50): which mechanisms users of the metadata log have. Nobody can log in with them yet.
//
// v0: KIP-554.

func (a *API) describeUserScramCredentials(c *call, request *kmsg.DescribeUserSCRAMCredentialsRequest) kmsg.Response {
	response := answerTo[*kmsg.DescribeUserSCRAMCredentialsResponse](request)
	if !a.allowed(c, auth.Describe, auth.Cluster) {
		response.ErrorCode = a.failed(c, kerr.ClusterAuthorizationFailed)
		response.ErrorMessage = errorText(kerr.ClusterAuthorizationFailed)
		return response
	}
	response.ErrorMessage = kmsg.StringPtr("")
	of := map[string][]*metadata.UserScramCredentialRecord{}
	for credential := range a.Metadata.Image().ScramCredentials() {
		of[credential.Name] = append(of[credential.Name], credential)
	}
	times := map[string]int{}
	for _, u := range request.Users {
		times[u.Name]++
	}
	if len(request.Users) == 0 {
		for name := range of {
			times[name] = 1
		}
	}
	for _, name := range sortedKeys(times) {
		out := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		out.User, out.ErrorMessage = name, kmsg.StringPtr("")
		var err error
		switch {
		case times[name] > 1:
			err = wireError(kerr.DuplicateResource,
				"Cannot describe SCRAM credentials for the same user twice in a single request: "+name)
		case of[name] == nil:
			err = wireError(kerr.ResourceNotFound, "Attempt to describe a user credential that does not exist: "+name)
		}
		if err != nil {
			out.ErrorCode, out.ErrorMessage = a.failed(c, err), errorText(err)
			response.Results = append(response.Results, out)
			continue
		}
		for _, credential := range of[name] {
			out.CredentialInfos = append(out.CredentialInfos,
				kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo{Mechanism: credential.Mechanism,
					Iterations: credential.Iterations})
		}
		response.Results = append(response.Results, out)
	}
	return response
}
