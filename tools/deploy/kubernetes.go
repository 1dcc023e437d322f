package main

import (
	encoding "encoding/json"
	"errors"
	"fmt"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kinds are the types of what is deployed.
func kinds() map[string]func() any {
	return map[string]func() any{
		"apps/v1 StatefulSet":                func() any { return &apps.StatefulSet{} },
		"v1 Service":                         func() any { return &core.Service{} },
		"v1 ConfigMap":                       func() any { return &core.ConfigMap{} },
		"policy/v1 PodDisruptionBudget":      func() any { return &policy.PodDisruptionBudget{} },
		"networking.k8s.io/v1 NetworkPolicy": func() any { return &networking.NetworkPolicy{} },
	}
}

// kubernetes renders a kustomization and reads each object into the type of the API: a field that it does not have, or
// that is there twice, is an error.
func kubernetes(folder string) ([]byte, error) {
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	var objects []any
	for _, r := range rendered.Resources() {
		kind := r.GetApiVersion() + " " + r.GetKind()
		empty, ok := kinds()[kind]
		if !ok {
			return nil, fmt.Errorf("%s is not known here", kind)
		}
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		object := empty()
		var strict []error
		if text, err = yaml.YAMLToJSONStrict(text); err == nil {
			strict, err = json.UnmarshalStrict(text, object) // as the API server: names of fields have capitals too
		}
		if err = errors.Join(append(strict, err)...); err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, r.GetName(), err)
		}
		objects = append(objects, object)
	}
	return encoding.Marshal(objects)
}
