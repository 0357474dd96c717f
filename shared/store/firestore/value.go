package firestore

import (
	"fmt"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/countersign-run/countersign/shared/store"
)

func encode(v any) (*pb.Value, error) {
	v, err := store.Canonical(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case bool:
		return &pb.Value{ValueType: &pb.Value_BooleanValue{BooleanValue: v}}, nil
	case int64:
		return &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: v}}, nil
	case time.Time:
		return &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: timestamppb.New(v)}}, nil
	default:
		return &pb.Value{ValueType: &pb.Value_StringValue{StringValue: v.(string)}}, nil
	}
}

// encodeFields encodes the document's fields, its data, and the version that it replaces. Without that version,
// Firestore would keep the old update time if a write changes nothing, and two writers of the same content would both
// succeed.
func encodeFields(d store.Doc) (map[string]*pb.Value, error) {
	all := make(map[string]any, len(d.Fields)+1)
	for name, v := range d.Fields {
		all[name] = v
	}
	if !d.Version.IsZero() {
		all[store.PreviousField] = d.Version
	}
	out := make(map[string]*pb.Value, len(all)+1)
	for name, v := range all {
		encoded, err := encode(v)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		out[name] = encoded
	}
	out[store.DataField] = &pb.Value{ValueType: &pb.Value_StringValue{StringValue: string(d.Data)}}
	return out, nil
}

func (s *Store) decode(doc *pb.Document) (store.Doc, error) {
	d := store.Doc{
		Path:    s.documentPath(doc.GetName()),
		Fields:  make(map[string]any, len(doc.GetFields())),
		Data:    []byte(doc.GetFields()[store.DataField].GetStringValue()),
		Version: doc.GetUpdateTime().AsTime(),
	}
	for name, v := range doc.GetFields() {
		switch v := v.GetValueType().(type) {
		case *pb.Value_BooleanValue:
			d.Fields[name] = v.BooleanValue
		case *pb.Value_IntegerValue:
			d.Fields[name] = v.IntegerValue
		case *pb.Value_TimestampValue:
			d.Fields[name] = v.TimestampValue.AsTime()
		case *pb.Value_StringValue:
			d.Fields[name] = v.StringValue
		default:
			return store.Doc{}, fmt.Errorf("firestore store: the field %s is of a type that the store never writes",
				name)
		}
	}
	delete(d.Fields, store.DataField)
	delete(d.Fields, store.PreviousField)
	return d, nil
}
