package api

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/checkpoint"
	"tidemark/internal/logdir"
	"tidemark/internal/replica"
)

// AlterReplicaLogDirs (34). A partition can be put where it is; to move it to another log directory is not built.
//
// v0: KIP-113. v1: throttling. v2: flexible.

// maxFolderName is the longest name of a partition's folder while it moves: "name-0.<32 hex digits>-future".
const maxFolderName = 255

func (a *API) alterReplicaLogDirs(c *call, request *kmsg.AlterReplicaLogDirsRequest) kmsg.Response {
	response := answerTo[*kmsg.AlterReplicaLogDirsResponse](request)
	at := map[string]int{}
	for _, d := range request.Dirs {
		for _, t := range d.Topics {
			if _, ok := at[t.Topic]; !ok {
				at[t.Topic] = len(response.Topics)
				out := kmsg.NewAlterReplicaLogDirsResponseTopic()
				out.Topic = t.Topic
				response.Topics = append(response.Topics, out)
			}
			out := &response.Topics[at[t.Topic]]
			for _, id := range t.Partitions {
				one := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				one.Partition = id
				one.ErrorCode = a.failed(c, a.moveTo(c, d.Dir, checkpoint.TopicPartition{Topic: t.Topic, Partition: id}))
				out.Partitions = append(out.Partitions, one)
			}
		}
	}
	return response
}

// moveTo checks that a partition is in a log directory.
func (a *API) moveTo(c *call, dir string, tp checkpoint.TopicPartition) error {
	if !a.allowed(c, auth.Alter, auth.Cluster) {
		return kerr.ClusterAuthorizationFailed
	}
	if len(tp.String())+len(".0123456789abcdef0123456789abcdef-future") > maxFolderName {
		return kerr.InvalidTopicException
	}
	dirs := a.Dirs.Directories()
	i := slices.IndexFunc(dirs, func(d logdir.Directory) bool { return d.Path == dir })
	switch {
	case !filepath.IsAbs(dir), i < 0:
		return kerr.LogDirNotFound
	case dirs[i].Err != nil:
		return kerr.KafkaStorageError
	}
	p, err := a.partitionByName(tp.Topic, tp.Partition)
	if errors.Is(err, replica.ErrNotLeader) {
		return kerr.ReplicaNotAvailable
	}
	if err != nil {
		return err
	}
	if _, err := p.Log(); err != nil {
		return kerr.KafkaStorageError
	}
	if at, ok := a.Dirs.DirectoryOf(tp); !ok || at.Path != dir {
		a.Logger.Warn("a partition is to move to another log directory, which is not built", "partition", tp.String(),
			"dir", dir)
		return kerr.KafkaStorageError
	}
	return nil
}
