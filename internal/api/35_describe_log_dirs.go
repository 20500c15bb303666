package api

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/logdir"
)

// DescribeLogDirs (35).
//
// v0: KIP-113. v1: throttling. v2: flexible. v3: an error code for all (KIP-784). v4: size of the disks (KIP-827).
// v5: cordoned directories (KIP-1066).

func (a *API) describeLogDirs(c *call, request *kmsg.DescribeLogDirsRequest) kmsg.Response {
	response := answerTo[*kmsg.DescribeLogDirsResponse](request)
	if !a.allowed(c, auth.Describe, auth.Cluster) {
		response.ErrorCode = a.failed(c, kerr.ClusterAuthorizationFailed)
		return response
	}
	wanted := func(checkpoint.TopicPartition) bool { return true }
	if request.Topics != nil {
		set := map[checkpoint.TopicPartition]bool{}
		for _, t := range request.Topics {
			for _, id := range t.Partitions {
				set[checkpoint.TopicPartition{Topic: t.Topic, Partition: id}] = true
			}
		}
		wanted = func(tp checkpoint.TopicPartition) bool { return set[tp] }
	}
	for _, d := range a.Dirs.Directories() {
		out := kmsg.NewDescribeLogDirsResponseDir()
		out.Dir, out.TotalBytes, out.UsableBytes = d.Path, -1, -1
		out.IsCordoned = d.Cordoned
		if err := a.describeLogDir(d, wanted, &out); err != nil {
			a.Logger.Warn("log directory cannot be described", "dir", d.Path, "error", err)
			out.ErrorCode, out.Topics = a.failed(c, kerr.KafkaStorageError), nil
		}
		response.Dirs = append(response.Dirs, out)
	}
	return response
}

func (a *API) describeLogDir(d logdir.Directory, wanted func(checkpoint.TopicPartition) bool,
	out *kmsg.DescribeLogDirsResponseDir,
) (err error) {
	if d.Err != nil {
		return d.Err
	}
	if out.TotalBytes, out.UsableBytes, err = a.Dirs.Space(d.Path); err != nil {
		return err
	}
	topics := map[string]*kmsg.DescribeLogDirsResponseDirTopic{}
	for tp, log := range a.Dirs.Logs(d.Path) {
		if !wanted(tp) {
			continue
		}
		one, err := a.describeLog(tp, log)
		if err != nil {
			return err
		}
		t := topics[tp.Topic]
		if t == nil {
			t = &kmsg.DescribeLogDirsResponseDirTopic{Topic: tp.Topic}
			topics[tp.Topic] = t
		}
		t.Partitions = append(t.Partitions, one)
	}
	for _, name := range sortedKeys(topics) {
		t := topics[name]
		slices.SortFunc(t.Partitions, func(a, b kmsg.DescribeLogDirsResponseDirTopicPartition) int {
			return cmp.Compare(a.Partition, b.Partition)
		})
		out.Topics = append(out.Topics, *t)
	}
	return nil
}

func (a *API) describeLog(tp checkpoint.TopicPartition, log *commitlog.Log) (
	kmsg.DescribeLogDirsResponseDirTopicPartition, error,
) {
	one := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
	one.Partition = tp.Partition
	size, err := log.SizeBytes()
	if err != nil {
		return one, err
	}
	one.Size = size
	if p, err := a.Replicas.Partition(tp.Topic, tp.Partition); err == nil {
		one.OffsetLag = max(0, p.HighWatermark()-log.EndOffset())
	}
	return one, nil
}
