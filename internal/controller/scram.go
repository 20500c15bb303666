package controller

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"hash"

	"tidemark/internal/metadata"
)

// The SCRAM mechanisms, with their numbers on the wire and in records.
const (
	ScramSHA256 int8 = 1
	ScramSHA512 int8 = 2
)

// How often a password may have been hashed.
const (
	minScramIterations = 4096
	maxScramIterations = 16384
)

// ScramUpsertion sets the credential of a user for one mechanism. SaltedPassword is what PBKDF2 makes of the password,
// the salt and the iterations.
type ScramUpsertion struct {
	User           string
	Mechanism      int8
	Iterations     int32
	Salt           []byte
	SaltedPassword []byte
}

// ScramDeletion removes the credential of a user for one mechanism.
type ScramDeletion struct {
	User      string
	Mechanism int8
}

// AlterUserScramCredentials changes credentials (KIP-554), at most one of each user. Its result is an
// [AlterScramResult].
type AlterUserScramCredentials struct {
	Deletions  []ScramDeletion
	Upsertions []ScramUpsertion
}

// AlterScramResult has each user once: those deleted, those set, those refused.
type AlterScramResult struct {
	Users []AlteredScram
}

// AlteredScram is the outcome for one user.
type AlteredScram struct {
	User string
	Err  *Error
}

func (c AlterUserScramCredentials) decide(d *decider) (any, error) {
	s := scramChanges{decider: d, records: map[string]metadata.Body{}, refused: map[string]*Error{}}
	for _, x := range c.Deletions {
		s.take(x.User, func() (metadata.Body, *Error) { return s.deletion(x) })
	}
	for _, x := range c.Upsertions {
		s.take(x.User, func() (metadata.Body, *Error) { return upsertion(x) })
	}
	var res AlterScramResult
	for _, user := range s.users {
		if body, ok := s.records[user]; ok {
			d.add(0, body)
			res.Users = append(res.Users, AlteredScram{User: user})
		}
	}
	for _, user := range s.users {
		if err := s.refused[user]; err != nil {
			res.Users = append(res.Users, AlteredScram{User: user, Err: err})
		}
	}
	return res, nil
}

// scramChanges gathers the changes of one command: each user has either a record or a refusal.
type scramChanges struct {
	*decider
	users   []string // in the order in which they come first
	records map[string]metadata.Body
	refused map[string]*Error
}

// take adds the change of a user. The first refusal counts; a second change refuses both.
func (s *scramChanges) take(user string, change func() (metadata.Body, *Error)) {
	if s.refused[user] != nil {
		return
	}
	if _, twice := s.records[user]; twice {
		delete(s.records, user)
		s.refused[user] = refuse(ErrDuplicateResource, "A user credential cannot be altered twice in the same request")
		return
	}
	s.users = append(s.users, user)
	if !metadata.SupportsScram(s.level) {
		s.refused[user] = refuse(ErrUnsupportedVersion, "The current metadata.version does not support SCRAM")
		return
	}
	body, err := change()
	if err != nil {
		s.refused[user] = err
		return
	}
	s.records[user] = body
}

func (s *scramChanges) deletion(x ScramDeletion) (metadata.Body, *Error) {
	if err := checkScram(x.User, x.Mechanism); err != nil {
		return nil, err
	}
	if s.Image.ScramCredential(x.User, x.Mechanism) == nil {
		return nil, refuse(ErrResourceNotFound, "Attempt to delete a user credential that does not exist")
	}
	return &metadata.RemoveUserScramCredentialRecord{Name: x.User, Mechanism: x.Mechanism}, nil
}

func upsertion(x ScramUpsertion) (metadata.Body, *Error) {
	if err := checkScram(x.User, x.Mechanism); err != nil {
		return nil, err
	}
	switch {
	case x.Iterations < minScramIterations:
		return nil, refuse(ErrUnacceptableCredential, "Too few iterations")
	case x.Iterations > maxScramIterations:
		return nil, refuse(ErrUnacceptableCredential, "Too many iterations")
	case len(x.SaltedPassword) == 0:
		// Kafka: an empty key is one that its HMAC does not take.
		return nil, &Error{Reason: ErrUnknownServerError}
	}
	stored, server := scramKeys(x.Mechanism, x.SaltedPassword)
	return &metadata.UserScramCredentialRecord{Name: x.User, Mechanism: x.Mechanism, Salt: x.Salt,
		StoredKey: stored, ServerKey: server, Iterations: x.Iterations}, nil
}

func checkScram(user string, mechanism int8) *Error {
	switch {
	case user == "":
		return refuse(ErrUnacceptableCredential, "Username must not be empty")
	case mechanism != ScramSHA256 && mechanism != ScramSHA512:
		return refuse(ErrUnsupportedSaslMechanism, "Unknown SCRAM mechanism")
	}
	return nil
}

// scramKeys are StoredKey and ServerKey of RFC 5802, section 3.
func scramKeys(mechanism int8, saltedPassword []byte) (stored, server []byte) {
	digest := sha256.New
	if mechanism == ScramSHA512 {
		digest = sha512.New
	}
	h := digest()
	h.Write(scramMAC(digest, saltedPassword, "Client Key"))
	return h.Sum(nil), scramMAC(digest, saltedPassword, "Server Key")
}

func scramMAC(digest func() hash.Hash, key []byte, text string) []byte {
	mac := hmac.New(digest, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
