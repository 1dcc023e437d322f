package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// aloneTests finds the tests of a folder that are not parallel: nothing else of their package runs beside them.
func aloneTests(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("find tests: %w", err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read tests: %w", err)
		}
		for _, d := range f.Decls {
			if fn, is := d.(*ast.FuncDecl); is && isTest(fn) && !isParallel(fn) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names, nil
}

func isTest(fn *ast.FuncDecl) bool {
	return fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
}

// isParallel reports whether a test calls t.Parallel itself. That its subtests do says nothing of the test.
func isParallel(fn *ast.FuncDecl) bool {
	for _, s := range fn.Body.List {
		if e, is := s.(*ast.ExprStmt); is {
			if call, is := e.X.(*ast.CallExpr); is {
				if sel, is := call.Fun.(*ast.SelectorExpr); is && sel.Sel.Name == "Parallel" {
					return true
				}
			}
		}
	}
	return false
}
