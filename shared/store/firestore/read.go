package firestore

import (
	"context"
	"errors"
	"fmt"
	"io"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/countersign-run/countersign/shared/store"
)

// Get implements [store.Store] with one BatchGetDocuments RPC.
func (s *Store) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	if err := store.CheckGet(paths); err != nil || len(paths) == 0 {
		return nil, err
	}
	req := &pb.BatchGetDocumentsRequest{Database: s.root}
	asked := make(map[string]bool, len(paths))
	for _, p := range paths {
		if !asked[p] {
			req.Documents = append(req.Documents, s.documentName(p))
		}
		asked[p] = true
	}
	var found map[string]store.Doc
	err := s.call(ctx, "get", func(ctx context.Context) (err error) {
		found, err = s.batchGet(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	docs := make([]store.Doc, len(paths))
	for i, p := range paths {
		d, ok := found[p]
		if !ok {
			return nil, fmt.Errorf("firestore store: get: %w: a document is missing in the response",
				store.ErrUnavailable)
		}
		docs[i] = d
	}
	return docs, nil
}

func (s *Store) batchGet(ctx context.Context, req *pb.BatchGetDocumentsRequest) (map[string]store.Doc, error) {
	stream, err := s.client.BatchGetDocuments(ctx, req)
	if err != nil {
		return nil, err
	}
	found := make(map[string]store.Doc, len(req.Documents))
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		var d store.Doc
		switch r := res.GetResult().(type) {
		case *pb.BatchGetDocumentsResponse_Found:
			if d, err = s.decode(r.Found); err != nil {
				return nil, err
			}
		case *pb.BatchGetDocumentsResponse_Missing:
			d.Path = s.documentPath(r.Missing)
		default:
			continue // a message that only opens the stream
		}
		d.ReadTime = res.GetReadTime().AsTime()
		found[d.Path] = d
	}
}

// Query implements [store.Store] with one RunQuery RPC.
func (s *Store) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	if _, err := store.CheckQuery(q); err != nil {
		return nil, err
	}
	structured, err := s.structured(q)
	if err != nil {
		return nil, err
	}
	req := &pb.RunQueryRequest{Parent: s.root + "/documents",
		QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: structured}}
	var docs []store.Doc
	err = s.call(ctx, "query", func(ctx context.Context) (err error) {
		docs, err = s.runQuery(ctx, req)
		return err
	})
	return docs, err
}

func (s *Store) runQuery(ctx context.Context, req *pb.RunQueryRequest) ([]store.Doc, error) {
	stream, err := s.client.RunQuery(ctx, req)
	if err != nil {
		return nil, err
	}
	var docs []store.Doc
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		if res.GetDocument() == nil {
			continue // progress, or the read time of an empty answer
		}
		d, err := s.decode(res.GetDocument())
		if err != nil {
			return nil, err
		}
		d.ReadTime = res.GetReadTime().AsTime()
		docs = append(docs, d)
	}
}

var operators = map[string]pb.StructuredQuery_FieldFilter_Operator{
	"==": pb.StructuredQuery_FieldFilter_EQUAL,
	"<=": pb.StructuredQuery_FieldFilter_LESS_THAN_OR_EQUAL,
	">=": pb.StructuredQuery_FieldFilter_GREATER_THAN_OR_EQUAL,
}

func (s *Store) structured(q store.Query) (*pb.StructuredQuery, error) {
	direction := pb.StructuredQuery_ASCENDING
	if q.Desc {
		direction = pb.StructuredQuery_DESCENDING
	}
	out := &pb.StructuredQuery{
		From:    []*pb.StructuredQuery_CollectionSelector{{CollectionId: q.Collection}},
		OrderBy: []*pb.StructuredQuery_Order{{Field: field(store.ByName), Direction: direction}},
		Limit:   wrapperspb.Int32(int32(q.Limit)),
	}
	if q.OrderBy != store.ByName {
		out.OrderBy = append([]*pb.StructuredQuery_Order{{Field: field(q.OrderBy), Direction: direction}},
			out.OrderBy...)
	}
	var all []*pb.StructuredQuery_Filter
	for _, f := range q.Where {
		v, err := encode(f.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_FieldFilter{
			FieldFilter: &pb.StructuredQuery_FieldFilter{Field: field(f.Field), Op: operators[f.Op], Value: v},
		}})
	}
	if len(all) > 0 {
		out.Where = &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_CompositeFilter{
			CompositeFilter: &pb.StructuredQuery_CompositeFilter{Op: pb.StructuredQuery_CompositeFilter_AND,
				Filters: all},
		}}
	}
	if q.Select != nil {
		out.Select = &pb.StructuredQuery_Projection{Fields: []*pb.StructuredQuery_FieldReference{field(store.ByName)}}
		for _, name := range q.Select {
			out.Select.Fields = append(out.Select.Fields, field(name))
		}
	}
	if q.After != nil {
		id := s.documentName(q.Collection + "/" + q.After.ID)
		name := &pb.Value{ValueType: &pb.Value_ReferenceValue{ReferenceValue: id}}
		out.StartAt = &pb.Cursor{Values: []*pb.Value{name}, Before: false}
		if q.OrderBy != store.ByName {
			v, err := encode(q.After.Value)
			if err != nil {
				return nil, err
			}
			out.StartAt.Values = []*pb.Value{v, name}
		}
	}
	return out, nil
}

func field(name string) *pb.StructuredQuery_FieldReference {
	return &pb.StructuredQuery_FieldReference{FieldPath: name}
}
